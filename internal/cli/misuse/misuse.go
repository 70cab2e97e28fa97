// Package misuse defines the error for a mistake in the command line or the environment.
// The user must change something that was typed, set or named. Every package of the command
// returns this error. The command prints it unchanged and exits with the code for usage
// errors. The package contains nothing else.
package misuse

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Error describes the mistake and how to correct it.
type Error struct{ message string }

func (e *Error) Error() string { return e.message }

// Errorf returns an *Error.
func Errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Of returns an *Error about the use of cmd. The error refers to the help of cmd.
func Of(cmd *cobra.Command, format string, args ...any) error {
	return Errorf("%s: see %s --help", fmt.Sprintf(format, args...), cmd.CommandPath())
}
