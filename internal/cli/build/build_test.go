package build

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionShowsKnownBuildInformation(t *testing.T) {
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
