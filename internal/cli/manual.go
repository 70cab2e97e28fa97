package cli

import (
	"io"

	"github.com/spf13/cobra"
)

// Command is the tree of commands, for those who print its manual or ask which
// flags there are.
func Command() *cobra.Command {
	env := Env{Stdout: io.Discard, Stderr: io.Discard, LookupEnv: func(string) (string, bool) { return "", false }}
	root := newApp(env).newRoot()
	root.InitDefaultHelpCmd()
	return root
}
