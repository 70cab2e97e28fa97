package setup

import (
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/build"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
)

// Version returns leasehold version.
func Version(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	return &cobra.Command{
		Use: "version", Short: "Print the version, the commit and the Go version", DisableFlagsInUseLine: true,
		Args: arguments.None,
		RunE: func(*cobra.Command, []string) error {
			return c.Print(build.This(), "leasehold %s\n", build.This())
		},
	}
}
