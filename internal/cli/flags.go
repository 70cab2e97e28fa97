package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// durationFlag accepts what time.ParseDuration does and a bare number of
// seconds, as timeout(1) and flock(1) do.
type durationFlag struct {
	d   *time.Duration
	min time.Duration
}

func (f durationFlag) String() string {
	if f.d == nil || *f.d == 0 {
		return ""
	}
	return wording.Duration(*f.d)
}

func (durationFlag) Type() string { return "duration" }

func (f durationFlag) Set(s string) error {
	d, err := parseDuration(s)
	if err != nil {
		return err
	}
	if d < f.min {
		return fmt.Errorf("use at least %s", wording.Duration(f.min))
	}
	*f.d = d
	return nil
}

func parseDuration(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && seconds >= 0 && seconds < 1e9 {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok { // as timeout(1) has it
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n < 1e4 {
			return time.Duration(n * 24 * float64(time.Hour)), nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("use a duration, such as 30, 90s, 10m or 1h30m")
	}
	return d, nil
}

// chooseOwner returns the name shown to others, empty for the default. The
// LEASEHOLD_OWNER that run sets ends in the client id of that grant: it is cut
// off, as this client has its own.
func chooseOwner(flag string, settings *store.Settings) (string, error) {
	if flag != "" {
		return flag, nil
	}
	v, _, err := settings.Variable("LEASEHOLD_OWNER")
	return wording.OwnerWithoutID(v), err
}

// chooseLease returns the lease; flag holds the default if it was not given.
func chooseLease(flag time.Duration, given bool, settings *store.Settings) (time.Duration, error) {
	if given {
		return flag, nil
	}
	v, set, err := settings.Variable("LEASEHOLD_LEASE")
	if !set || err != nil {
		return flag, err
	}
	d, err := parseDuration(v)
	if err != nil {
		return 0, misuse.Errorf("LEASEHOLD_LEASE %s: %v", visible.Name(v), err)
	}
	return d, nil
}

// refuseShortLease refuses a lease that leaves no time to trust it, in a layout
// that allows for clocks that differ by skew.
func refuseShortLease(cmd *cobra.Command, lease time.Duration, l layout.Layout, skew time.Duration) error {
	switch {
	case lease-skew >= time.Second:
		return nil
	case skew == 0:
		return usageOf(cmd, "a lease of %s is too short: use at least 1s", wording.Duration(lease))
	}
	return usageOf(cmd, "a lease of %s is too short: layout %s allows for clocks that differ by %s: use at least %s",
		wording.Duration(lease), l.Name(), wording.Duration(skew), wording.Duration(time.Second+skew))
}

// dataFlag is --data: the text itself, or @FILE.
type dataFlag struct {
	text  string
	given bool
}

// option returns the option for the call, nil if the flag was not given.
func (f dataFlag) option(stdin io.Reader) (leasehold.RecordOption, error) {
	if !f.given {
		return nil, nil
	}
	path, isFile := strings.CutPrefix(f.text, "@")
	if !isFile {
		return leasehold.WithData([]byte(f.text)), nil
	}
	var b []byte
	var err error
	if path == "-" {
		b, err = io.ReadAll(stdin)
	} else {
		b, err = plainfile.ReadNamed(path)
	}
	if err != nil {
		return nil, misuse.Errorf("--data: cannot read %s: %v", path, failure.WithoutPath(err))
	}
	return leasehold.WithData(b), nil
}

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
	flags := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(&cobra.Command{Use: "--" + f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	return suggestion(flags, "--"+name)
}
