package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// flagError explains in plain words why a flag is unknown or has an invalid value.
func flagError(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		return err.Error() + flagSuggestion(cmd, unknown.GetSpecifiedName())
	}
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err.Error()
	}
	flag, value := "--"+bad.GetFlag().Name, visible.Name(bad.GetValue())
	var number *strconv.NumError
	switch {
	case !errors.As(err, &number):
		return fmt.Sprintf("%s %s: %v", flag, value, bad.Unwrap())
	case bad.GetFlag().Value.Type() == "bool":
		return fmt.Sprintf("%s=%s: use true or false, or %s alone", flag, value, flag)
	case errors.Is(number.Err, strconv.ErrRange):
		return fmt.Sprintf("%s %s: the number is too large", flag, value)
	}
	return fmt.Sprintf("%s %s: use a whole number", flag, value)
}

// flagSuggestion returns the flags of cmd that name may be a typo for. cobra only suggests
// commands, so each flag is turned into a command.
func flagSuggestion(cmd *cobra.Command, name string) string {
	flags := &cobra.Command{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(&cobra.Command{Use: "--" + f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	return arguments.Suggestion(flags, "--"+name)
}
