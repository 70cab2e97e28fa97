package cli

import (
	"fmt"
	"strings"
)

// CheckArgs returns an error if the command line contains a command or flag that does not
// exist. It runs no command, and does not detect missing arguments.
func CheckArgs(args []string) error {
	root := Command()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if left := cmd.Flags().Args(); cmd == root && len(left) > 0 && left[0] != strings.ToUpper(left[0]) && left[0] != "…" {
		return fmt.Errorf("no command %q", left[0])
	}
	return nil
}
