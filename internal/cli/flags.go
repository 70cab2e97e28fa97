package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
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
	return shortDuration(*f.d)
}

func (durationFlag) Type() string { return "duration" }

func (f durationFlag) Set(s string) error {
	d, err := parseDuration(s)
	if err != nil {
		return err
	}
	if d < f.min {
		return fmt.Errorf("use at least %s", shortDuration(f.min))
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

// shortDuration formats a duration as people write it: 10m, not 10m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// attributeNames are the attribute names given by --attr.
type attributeNames struct{ key, sort, ttl string }

func (n *attributeNames) String() string {
	var pairs []string
	for _, p := range [][2]string{{"key", n.key}, {"sort", n.sort}, {"ttl", n.ttl}} {
		if p[1] != "" {
			pairs = append(pairs, p[0]+"="+p[1])
		}
	}
	return strings.Join(pairs, ",")
}

func (*attributeNames) Type() string { return "ROLE=NAME" }

func (n *attributeNames) Set(s string) error {
	for _, pair := range strings.Split(s, ",") {
		role, name, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return errors.New("use ROLE=NAME, such as key=id")
		}
		if len(name) > 255 {
			return errors.New("names of attributes have at most 255 bytes")
		}
		switch role {
		case "key":
			n.key = name
		case "sort":
			n.sort = name
		case "ttl":
			n.ttl = name
		default:
			return fmt.Errorf("unknown role %q: use key, sort or ttl", role)
		}
	}
	return nil
}

// apply sets the names in a layout. It also returns the roles whose names are
// fixed in that layout.
func (n attributeNames) apply(l layout.Layout) (named layout.Layout, fixed []string) {
	switch l := l.(type) {
	case layout.Native:
		l.PartitionKey, l.SortKey, l.TTL = n.key, n.sort, n.ttl
		return l, nil
	case layout.PythonDynamoDBLock:
		l.PartitionKey, l.SortKey, l.TTL = n.key, n.sort, n.ttl
		return l, nil
	case layout.AWSLabs:
		l.PartitionKey, l.SortKey = n.key, n.sort
		return l, []string{"ttl"}
	case layout.Dynamolock:
		l.PartitionKey, l.SortKey = n.key, n.sort
		return l, []string{"ttl"}
	case layout.DynamoDLM:
		if n.sort == noAttribute { // as in tables of dynamo-dlm 1.x
			l.NoSlots = true
			return l, []string{"key", "ttl"}
		}
		return l, []string{"key", "sort", "ttl"}
	default:
		return l, []string{"key", "sort", "ttl"}
	}
}

// noAttribute as a name means that the table has no such attribute, as in
// layout.Native.
const noAttribute = "-"

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
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, usagef("--data: cannot read %s: %v", path, withoutPath(err))
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
	flag, value := "--"+bad.GetFlag().Name, printable(bad.GetValue())
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
