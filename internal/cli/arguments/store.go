package arguments

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// StoreArgs returns the given flags that choose the store and its layout.
func StoreArgs(cmd *cobra.Command) []string {
	var args []string
	for _, name := range []string{"table", "file", "layout", "attr", "region", "profile", "endpoint-url", "max-skew"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			args = append(args, "--"+name, f.Value.String())
		}
	}
	return args
}

// StoreFlags is StoreArgs as words of a shell: a command that a message tells to type
// needs them too.
func StoreFlags(cmd *cobra.Command) string {
	var words strings.Builder
	for _, arg := range StoreArgs(cmd) {
		words.WriteString(" " + wording.ShellWord(arg))
	}
	return words.String()
}
