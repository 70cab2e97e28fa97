// Package build is what this program was built from, and whether it is only being tried
// out from its own source.
package build

import (
	"fmt"
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
