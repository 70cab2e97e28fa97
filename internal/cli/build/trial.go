package build

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
)

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
