// Package build describes how this program was built. It also detects a trial: a user who
// tries leasehold out with go run, in its own source.
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

// noVersion is the version of a program that was built neither from a release nor from a
// commit.
const noVersion = "(devel)"

// Info is the build information that the Go command recorded.
type Info struct {
	Version  string `json:"version"`          // version of the module; "(devel)" if unknown
	Commit   string `json:"commit,omitempty"` // set if the program was built in a checkout
	Time     string `json:"time,omitempty"`   // time of the commit
	Modified bool   `json:"modified"`         // files differed from the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// This returns the build information of this program.
func This() Info {
	return of(recorded())
}

// recorded returns what the Go command recorded. The result is empty if it recorded nothing.
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

// In a trial, the user runs leasehold from its own source with go run ./cmd/leasehold, as
// README suggests. A trial is not a production job.
//
// A trial may use a default store although AWS settings are present: these settings belong
// to the user's other work. An installed leasehold may not use a default store if AWS
// settings are present. A cron job may have lost the variable that names its store, and AWS
// settings may then be the only hint left.

// OnTrial reports whether this process is a trial.
func OnTrial() bool {
	dir, err := os.Getwd()
	return err == nil && isTrial(recorded(), dir)
}

// isTrial reports whether a program with this build information that runs in dir is a
// trial. Go records no version and no commit for go run, but both for go install. A program
// that was built without both (-buildvcs=false) also counts as a trial while it runs in its
// source.
func isTrial(info *debug.BuildInfo, dir string) bool {
	b := of(info)
	return info.Path == info.Main.Path+"/cmd/leasehold" && b.Version == noVersion && b.Commit == "" &&
		moduleAt(dir) == info.Main.Path
}

const moduleLine = `(?m)^module\s+"?([^\s"]+)`

// moduleAt returns the module that the directory dir belongs to: the module of the nearest
// go.mod, in dir or above it. It returns "" if there is none.
func moduleAt(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if above := filepath.Dir(dir); err != nil && above != dir {
		return moduleAt(above)
	}
	if m := regexp.MustCompile(moduleLine).FindSubmatch(b); m != nil {
		return string(m[1])
	}
	return ""
}
