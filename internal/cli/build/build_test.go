package build

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestVersionShowsCommitAndWhetherSourceWasModified(t *testing.T) {
	t.Parallel()
	checkout := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{&debug.BuildInfo{}, "(devel) (go"},
		{&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3 (go"},
		{&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: checkout[:1]}, "v1.2.3 (commit 0123456789ab, go"},
		{&debug.BuildInfo{Settings: checkout}, "(devel) (commit 0123456789ab and changes, go"},
	} {
		if got := of(c.info).String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestGoRunCountsAsTrialOnlyInSourceDirectoryOfLeasehold(t *testing.T) {
	const own = "example.com/locks"
	source := t.TempDir()
	write := func(path, content string) string {
		t.Helper()
		path = filepath.Join(source, path)
		lab.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		lab.OK(t, os.WriteFile(path, []byte(content), 0o600))
		return filepath.Dir(path)
	}
	write("go.mod", "// The locks.\nmodule "+own+"\n\ngo 1.25\n")
	below := write("docs/page.md", "")
	nested := write("interop/go.mod", "module "+own+"/interop\n")
	damaged := write("damaged/go.mod", "modul "+own+"\n")
	program := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Path: own + "/cmd/leasehold", Main: debug.Module{Path: own, Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	test := program("(devel)")
	test.Path = own + "/internal/cli.test"
	for _, c := range []struct {
		what string
		info *debug.BuildInfo
		dir  string
		want bool
	}{
		{"go run", program("(devel)"), source, true},
		{"go run by an older Go", program(""), source, true},
		{"go run in a directory of the source", program("(devel)"), below, true},
		{"a release", program("v1.2.3"), source, false},
		{"go install in the source", program("v0.0.0-20261123063406-dd02837c057a", commit), source, false},
		{"go install in the source by an older Go", program("(devel)", commit), source, false},
		{"go run in a nested module of the source", program("(devel)"), nested, false},
		{"go run beside a damaged go.mod", program("(devel)"), damaged, false},
		{"go run in another directory", program("(devel)"), t.TempDir(), false},
		{"a test of the source", test, source, false},
		{"no build information", &debug.BuildInfo{}, t.TempDir(), false},
	} {
		lab.Want(t, c.what, isTrial(c.info, c.dir), c.want)
	}
}
