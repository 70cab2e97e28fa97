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

// flagError says in plain words why a flag has a bad value, or is none.
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

// flagSuggestion says which of cmd's flags name may be a slip for. cobra knows that of
// commands only, so each flag stands as one.
func flagSuggestion(cmd *cobra.Command, name string) string {
	flags := &cobra.Command{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(&cobra.Command{Use: "--" + f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	return arguments.Suggestion(flags, "--"+name)
}
