// Package build describes how this binary of leasehold was built. It also detects a trial:
// a run with "go run" inside a checkout of leasehold's source.
package build

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
)

// noVersion is the version that the Go command stores in a binary built neither from a
// release nor from a commit.
const noVersion = "(devel)"

// Info is the build information that the Go command stored in this binary.
type Info struct {
	Version  string `json:"version"`          // version of the module; "(devel)" if unknown
	Commit   string `json:"commit,omitempty"` // hash of the commit; empty if the Go command recorded none
	Time     string `json:"time,omitempty"`   // time of the commit
	Modified bool   `json:"modified"`         // true if source files differed from the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// This returns the build information of this program.
func This() Info { return of(recorded()) }

// recorded returns the build information that the Go command stored in this binary. The
// result is empty if the binary contains none.
func recorded() *debug.BuildInfo {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info
	}
	return &debug.BuildInfo{}
}

func of(info *debug.BuildInfo) Info {
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	return Info{
		Version: cmp.Or(info.Main.Version, noVersion),
		Commit:  set["vcs.revision"], Time: set["vcs.time"], Modified: set["vcs.modified"] == "true",
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
}

// String returns the line that --version prints.
func (b Info) String() string {
	from := ""
	if b.Commit != "" {
		from = "commit " + b.Commit[:min(len(b.Commit), 12)]
		if b.Modified {
			from += " and changes"
		}
		from += ", "
	}
	return fmt.Sprintf("%s (%s%s, %s/%s)", b.Version, from, b.Go, b.OS, b.Arch)
}

// A trial is a run from leasehold's own source with go run ./cmd/leasehold, as README suggests. It
// is never a production job, so it may use the default local store even if AWS settings exist (see
// store.Settings.Place).
//
// An installed leasehold, by contrast, may run in a cron job that has lost the variable that names
// its table. AWS settings are then the only sign that the job should use DynamoDB.

// OnTrial reports whether this process is a trial.
func OnTrial() bool {
	dir, err := os.Getwd()
	return err == nil && isTrial(recorded(), dir)
}

// isTrial reports whether a program with the given build information, run in dir, is a trial. The
// command go run records neither version nor commit; go install records at least a version. A build
// with -buildvcs=false records neither, so the program counts as a trial in its source directory.
func isTrial(info *debug.BuildInfo, dir string) bool {
	b := of(info)
	return info.Path == info.Main.Path+"/cmd/leasehold" && b.Version == noVersion && b.Commit == "" &&
		moduleAt(dir) == info.Main.Path
}

// moduleAt returns the path of the module that contains the directory dir. It reads the
// nearest go.mod, in dir or in a parent directory. It returns "" if there is no go.mod, or
// if that file names no module.
func moduleAt(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if above := filepath.Dir(dir); err != nil && above != dir {
		return moduleAt(above)
	}
	if m := regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`).FindSubmatch(b); m != nil {
		return string(m[1])
	}
	return ""
}
