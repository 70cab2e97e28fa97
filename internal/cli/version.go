package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// noVersion is the version of a program that was not built from a release or a commit.
const noVersion = "(devel)"

// build is what this program was built from, as the Go command recorded it.
type build struct {
	Version  string `json:"version"`          // of the module; "(devel)" if it is not known
	Commit   string `json:"commit,omitempty"` // known if it was built in a checkout
	Time     string `json:"time,omitempty"`   // of the commit
	Modified bool   `json:"modified"`         // files differed from the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: info.Main.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
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
func (b build) String() string {
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

func (a *app) newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version, the commit and the Go version", DisableFlagsInUseLine: true,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.flags.json {
				return json.NewEncoder(a.Stdout).Encode(thisBuild())
			}
			_, err := fmt.Fprintf(a.Stdout, "leasehold %s\n", thisBuild())
			return err
		},
	}
}
