package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/invocation"
)

// Command is the tree of commands, for those who print its manual or ask which
// flags there are.
func Command() *cobra.Command {
	env := invocation.Env{Stdout: io.Discard, Stderr: io.Discard, LookupEnv: func(string) (string, bool) { return "", false }}
	root := newRoot(invocation.New(env))
	root.InitDefaultHelpCmd()
	return root
}
