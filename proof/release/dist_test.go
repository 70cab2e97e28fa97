package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"golang.org/x/mod/semver"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// The binaries are built from the commit that is checked out, without uncommitted changes.
func TestTwoReleaseBuildsOfSameCommitAreIdentical(t *testing.T) {
	here := []platform{{runtime.GOOS, runtime.GOARCH}}
	c := lab.Must(checkedOut(t.Context(), "../.."))(t)
	first := lab.Must(releaseOf(t.Context(), "../..", c, here))(t)
	second, err := releaseOf(t.Context(), "../..", c, here)
	lab.OK(t, errors.Join(err, same(first, second)))
	var names []string
	var bill cyclonedx.BOM
	for _, f := range first {
		names = append(names, f.name)
		if strings.HasSuffix(f.name, ".cdx.json") {
			lab.OK(t, json.Unmarshal(f.content, &bill))
		}
	}
	if len(first) != 3 || names[2] != "SHA256SUMS" || strings.Count(string(first[2].content), "\n") != 2 {
		t.Errorf("the release has %v", names)
	}
	listed := slices.ContainsFunc(*bill.Components, func(c cyclonedx.Component) bool {
		return c.Name == "github.com/aws/aws-sdk-go-v2/service/dynamodb" && strings.HasPrefix(c.PackageURL, "pkg:golang/") && c.Version != ""
	})
	if !listed || bill.Metadata.Component.Name != mainModule {
		t.Errorf("the bill of materials describes %s and lists %d modules", bill.Metadata.Component.Name, len(*bill.Components))
	}
}

func TestReleaseIsNotBuiltFromUncommittedChanges(t *testing.T) {
	dir := t.TempDir()
	lab.Must(output(t.Context(), dir, nil, "git", "init", "--quiet"))(t)
	lab.OK(t, requireCommitted(t.Context(), dir))
	lab.OK(t, os.WriteFile(filepath.Join(dir, "help.go"), nil, 0o600))
	lab.WantText(t, "with a new file", dist(t.Context(), dir, t.TempDir()), "help.go")
}

func TestReleaseComparisonFindsDifferentFiles(t *testing.T) {
	a, b := []file{{name: "x", content: []byte("1")}}, []file{{name: "x", content: []byte("2")}}
	lab.WantText(t, "same", same(a, b), "x is not the same")
	lab.WantFailed(t, "comparison without a file", same(a, nil))
}

func TestFilesInReleaseArchiveHaveRequestedModificationTime(t *testing.T) {
	at := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	files := []file{{name: "leasehold", content: []byte("program"), executable: true}, {name: "LICENSE", content: []byte("text")}}
	want := []string{"d/LICENSE -rw-r--r--", "d/leasehold -rwxr-xr-x"}

	archive := lab.Must(pack("d", files, platform{os: "linux"}, at))(t)
	lab.Want(t, "name of the archive", archive.name, "d.tar.gz")
	z := lab.Must(gzip.NewReader(bytes.NewReader(archive.content)))(t)
	var got []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.Name+" "+h.FileInfo().Mode().String())
		if !h.ModTime.Equal(at) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s: %v, user %d %q", h.Name, h.ModTime, h.Uid, h.Uname)
		}
	}
	lab.Want(t, "files of the archive", got, want)

	archive = lab.Must(pack("d", files, platform{os: "windows"}, at))(t)
	lab.Want(t, "name of the archive", archive.name, "d.zip")
	r := lab.Must(zip.NewReader(bytes.NewReader(archive.content), int64(len(archive.content))))(t)
	got = nil
	for _, f := range r.File {
		got = append(got, f.Name+" "+f.Mode().String())
		lab.Want(t, f.Name+" was modified at the given time", f.Modified.Equal(at), true)
	}
	lab.Want(t, "files of the archive", got, want)
}

func TestCommandsAndHelpTopicsHaveManualPages(t *testing.T) {
	files := lab.Must(manual(time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)))(t)
	pages := map[string]string{}
	for _, f := range files {
		pages[path.Base(f.name)] = string(f.content)
	}
	for _, name := range []string{
		"leasehold.1", "leasehold-run.1", "leasehold-table-create.1", "leasehold-exit-codes.1", "leasehold-environment.1",
		"leasehold.bash", "_leasehold", "leasehold.fish", "leasehold.ps1",
	} {
		lab.Want(t, "there is "+name, pages[name] != "", true)
	}
	_, hasPage := pages["leasehold-watchdog.1"]
	lab.Want(t, "hidden command has a page", hasPage, false)
	lab.WantParts(t, "the page of exit codes", pages["leasehold-exit-codes.1"], "\n  123       the lock was lost")
}

func TestReleasedCommandIsStrippedButHasBuildInfo(t *testing.T) {
	command, info, err := build(t.Context(), "../..", filepath.Join(t.TempDir(), "leasehold"), platform{"linux", "amd64"})
	lab.OK(t, err)
	of := lab.Must(elf.NewFile(bytes.NewReader(command.content)))(t)
	for _, s := range of.Sections {
		if slices.Contains([]string{".symtab", ".strtab", ".debug_info", ".zdebug_info", ".debug_line"}, s.Name) {
			t.Errorf("the command has the section %s of %d bytes", s.Name, s.Size)
		}
	}
	if info.Main.Path != mainModule || len(info.Deps) == 0 || len(info.Settings) == 0 {
		t.Errorf("the build information is incomplete: %v", info)
	}
}

func TestAllAdaptersRequireSameReleaseOfLeasehold(t *testing.T) {
	versions := map[string]string{}
	for _, adapter := range adapters {
		version := lab.Must(requiredBy("../..", adapter))(t)
		versions[version] = adapter
		if semver.Canonical(version) != version || semver.Prerelease(version) != "" {
			t.Errorf("%s requires %s, which is not a release version", adapter, version)
		}
	}
	lab.Want(t, "versions that the adapters require", len(versions), 1)
}

func TestReleaseTagMustBeVersionThatAdaptersRequire(t *testing.T) {
	for version, want := range map[string]string{
		"1.2":     "is not a version",
		"v99.0.0": "contrib/leaseholdgocron/go.mod requires",
	} {
		problems, err := tagProblems(t.Context(), "../..", version)
		if err != nil || !strings.Contains(strings.Join(problems, "\n"), want) {
			t.Errorf("%s: %q, %v", version, problems, err)
		}
	}
}
