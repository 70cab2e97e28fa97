// Package build is what this program was built from, and whether it is only being tried
// out from its own source.
package build

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
)

// noVersion is the version of a program that was not built from a release or a commit.
const noVersion = "(devel)"

// Info is what this program was built from, as the Go command recorded it.
type Info struct {
	Version  string `json:"version"`          // of the module; "(devel)" if it is not known
	Commit   string `json:"commit,omitempty"` // known if it was built in a checkout
	Time     string `json:"time,omitempty"`   // of the commit
	Modified bool   `json:"modified"`         // files differed from the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// This is what this program was built from.
func This() Info {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return of(info)
}

func of(info *debug.BuildInfo) Info {
	b := Info{Version: info.Main.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if b.Version == "" {
		b.Version = noVersion
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the line of --version.
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

// A trial is leasehold run from its own source, as README shows it: go run
// ./cmd/leasehold. It is no job of anybody's, so it may guess a store beside AWS
// settings, which belong to other work of whoever tries it out. An installed leasehold
// may not: to a cron job that has lost its variable, AWS settings may be all that is
// left of where its locks were.

// OnTrial reports whether this process is a trial.
func OnTrial() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	dir, err := os.Getwd()
	return err == nil && isTrial(info, dir)
}

// isTrial reports whether a program that was built so and runs in dir is a trial. Go
// records no version and no commit for what go run builds, and both for what it
// installs; a program that was built without them (-buildvcs=false) is not told apart
// while it runs in the source.
func isTrial(info *debug.BuildInfo, dir string) bool {
	b := of(info)
	return info.Path == info.Main.Path+"/cmd/leasehold" && b.Version == noVersion && b.Commit == "" &&
		moduleAt(dir) == info.Main.Path
}

const moduleLine = `(?m)^module\s+"?([^\s"]+)`

// moduleAt returns the module that a directory belongs to, as the Go command finds it:
// that of the nearest go.mod. Empty: it belongs to none.
func moduleAt(dir string) string {
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			if m := regexp.MustCompile(moduleLine).FindSubmatch(b); m != nil {
				return string(m[1])
			}
			return ""
		}
		above := filepath.Dir(dir)
		if above == dir {
			return ""
		}
		dir = above
	}
}
