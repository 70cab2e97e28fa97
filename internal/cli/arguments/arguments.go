// Package arguments parses the arguments and the flags that several commands share, so that
// all commands report a mistake in the same words. Its types Text and Duration also record
// whether the user gave the flag. If the user did not, package store reads the value from the
// flag's environment variable, provided that the flag has one.
//
// The package opens no connections. The only file that it reads is the FILE of --data @FILE.
package arguments

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// OneKey is a cobra.PositionalArgs that accepts exactly one argument, the KEY.
func OneKey(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return failure.MisuseOf(cmd, "KEY is missing")
	case len(args) > 1:
		return failure.MisuseOf(cmd, "only one KEY is allowed: remove %s", visible.Name(args[1]))
	case args[0] == "":
		return failure.MisuseOf(cmd, "KEY is empty")
	}
	return nil
}

// None is a cobra.PositionalArgs that accepts no arguments.
func None(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return failure.MisuseOf(cmd, "%s takes no arguments: remove %s", cmd.Name(), visible.Name(args[0]))
	}
	return nil
}

// OnePrefix is a cobra.PositionalArgs that accepts either no argument or one argument, the
// PREFIX.
func OnePrefix(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return failure.MisuseOf(cmd, "only one PREFIX is allowed: remove %s", visible.Name(args[1]))
	}
	return nil
}

// Subcommand is the RunE of a command that only groups subcommands. Without arguments it
// prints the help. With arguments it returns an error, because cobra calls it only if the
// first argument names no subcommand.
func Subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return failure.MisuseOf(cmd, "unknown command %s%s", visible.Name(args[0]), Suggestion(cmd, args[0]))
}

// Suggestion returns ", did you mean NAME?" with the subcommands of cmd whose names
// resemble arg. It returns "" if no name does.
func Suggestion(cmd *cobra.Command, arg string) string {
	cmd.SuggestionsMinimumDistance = 2 // suggest only names that differ from arg in at most two letters
	names := cmd.SuggestionsFor(arg)
	if len(names) == 0 {
		return ""
	}
	return ", did you mean " + strings.Join(names, " or ") + "?"
}

// RunsCMD is the key of an annotation on cobra commands that can run a CMD (a program of the user).
// The annotation's value says when they run it. For example, UnlessWatch means: not with --watch or
// --step-down. These commands have exit codes of their own (see package failure).
const (
	RunsCMD     = "runs CMD"
	Always      = "always"
	AfterDashes = "after --"
	UnlessWatch = "unless --watch"
)

// Text is the value of a text flag. It records whether the user gave the flag.
type Text struct {
	Value string // the default if Given is false
	Given bool
}

func (t *Text) String() string { return t.Value }

// Type returns "string", the type name of pflag's own text flags. Two parts of package cli
// recognize text flags by this name: the help, and the check for empty values.
func (*Text) Type() string { return "string" }

// Set stores the value and sets Given.
func (t *Text) Set(text string) error {
	*t = Text{text, true}
	return nil
}

// Data is the value of the flag --data: the text to store or, as @FILE, the name of a file
// that contains the text.
type Data struct{ Text }

// Flag adds the flag --data to fl.
func (d *Data) Flag(fl *pflag.FlagSet) {
	fl.Var(d, "data", "store `TEXT` in the record; @FILE: from FILE")
}

// Option returns the option that stores the text of --data in a lock's record. It returns
// nil if the user did not give --data.
func (d *Data) Option(stdin io.Reader) (leasehold.RecordOption, error) {
	if !d.Given {
		return nil, nil
	}
	path, isFile := strings.CutPrefix(d.Value, "@")
	if !isFile {
		return leasehold.WithData([]byte(d.Value)), nil
	}
	if path != "-" {
		f, err := plainfile.OpenNamed(path, os.O_RDONLY)
		if err != nil {
			return nil, failure.Misusef("--data: cannot read %s: %v", path, failure.WithoutPath(err))
		}
		defer f.Close()
		stdin = f
	}
	const most = 400 << 10 // bytes; a record, which also contains the data, is never larger
	b, err := io.ReadAll(io.LimitReader(stdin, most+1))
	switch {
	case err != nil:
		return nil, failure.Misusef("--data: cannot read %s: %v", path, failure.WithoutPath(err))
	case len(b) > most: // a device such as /dev/zero never ends
		return nil, failure.Misusef("--data: %s is larger than a record can be: keep large data elsewhere and a reference here", path)
	}
	return leasehold.WithData(b), nil
}

// Duration is the value of a duration flag. It records whether the user gave the flag. It
// accepts what wording.ParseDuration accepts.
type Duration struct {
	time.Duration               // the default if Given is false
	Min           time.Duration // the smallest value that Set accepts
	Given         bool
}

// Lasting returns a Duration with the default d.
func Lasting(d time.Duration) Duration { return Duration{Duration: d} }

func (f *Duration) String() string {
	if f.Duration == 0 {
		return ""
	}
	return wording.Duration(f.Duration)
}

// Type returns "duration". If it returned "string", pflag would print the default in quotes in
// the help: (default "10s").
func (*Duration) Type() string { return "duration" }

// Set parses the value and sets Given.
func (f *Duration) Set(s string) error {
	d, err := wording.ParseDuration(s)
	if err != nil {
		return err
	}
	if d < f.Min {
		return fmt.Errorf("use at least %s", wording.Duration(f.Min))
	}
	f.Duration, f.Given = d, true
	return nil
}

// Check adds the flag --check or --check=DURATION to fl. The command then observes the records for
// at most DURATION, to see whether their holders renew. A plain --check means one minute, because
// without a limit, a single long lease would make the command wait for hours.
func Check(fl *pflag.FlagSet, d *Duration) {
	fl.Var(d, "check", "observe for `DURATION` at most, and show which holders are live, dead or unknown; --check=0: until all are known")
	fl.Lookup("check").NoOptDefVal = wording.Duration(time.Minute)
}

// SortKey adds the flag --sort-key to fl.
func SortKey(fl *pflag.FlagSet, value *string) {
	fl.StringVar(value, "sort-key", "", "sort key `VALUE`, in a table that has one")
}

// StoreArgs returns the flags that choose the store and its layout, with the values that
// the user gave. It omits flags that the user did not give.
func StoreArgs(cmd *cobra.Command) []string {
	var args []string
	for _, name := range []string{"table", "file", "layout", "attr", "region", "failover", "profile", "endpoint-url"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			args = append(args, "--"+name, f.Value.String())
		}
	}
	return args
}

// StoreFlags returns the result of StoreArgs as text, quoted for a shell. Messages insert
// this text into the commands that they suggest.
func StoreFlags(cmd *cobra.Command) string {
	var words strings.Builder
	for _, arg := range StoreArgs(cmd) {
		words.WriteString(" " + wording.ShellWord(arg))
	}
	return words.String()
}
