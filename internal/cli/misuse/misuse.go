// Package misuse is the error of a mistake in the command line or the environment: what
// the user typed, set or named is what must change. Every room of the command returns
// it; the command prints it as it is, and exits with the code for usage. It knows
// nothing else.
package misuse

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Error is such a mistake, and what to do about it.
type Error struct{ message string }

func (e *Error) Error() string { return e.message }

// Errorf returns an *Error.
func Errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Of returns an *Error in the use of cmd, with a reference to its help.
func Of(cmd *cobra.Command, format string, args ...any) error {
	return Errorf("%s: see %s --help", fmt.Sprintf(format, args...), cmd.CommandPath())
}
