// Package build describes how this program was built.
package build

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Info is the build information that the Go command recorded.
type Info struct {
	Version  string `json:"version"`          // version of the module; "(devel)" if built neither from a release nor from a commit
	Commit   string `json:"commit,omitempty"` // set if the program was built in a checkout
	Time     string `json:"time,omitempty"`   // time of the commit
	Modified bool   `json:"modified"`         // files differed from the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// This returns the build information of this program.
func This() Info {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return of(info)
}

func of(info *debug.BuildInfo) Info {
	b := Info{Version: cmp.Or(info.Main.Version, "(devel)"), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
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
