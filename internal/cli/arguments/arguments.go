// Package arguments parses the arguments and the flags that several commands have, so that
// all commands report a mistake in the same words. Text and Duration record whether their
// flag was given. A flag may have an environment variable that replaces it; package store
// reads the variable only if the flag was not given.
//
// The package opens nothing and prints nothing.
package arguments

import (
	"fmt"
	"io"
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

// OneKey accepts exactly one argument, the key.
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

// None accepts no arguments.
func None(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return failure.MisuseOf(cmd, "%s takes no arguments: remove %s", cmd.Name(), visible.Name(args[0]))
	}
	return nil
}

// OnePrefix accepts at most one argument, the PREFIX.
func OnePrefix(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return failure.MisuseOf(cmd, "only one PREFIX is allowed: remove %s", visible.Name(args[1]))
	}
	return nil
}

// Subcommand is the RunE of a command that only has subcommands. Without arguments it
// prints the help. Otherwise the first argument names no subcommand, and is refused.
func Subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return failure.MisuseOf(cmd, "unknown command %s%s", visible.Name(args[0]), Suggestion(cmd, args[0]))
}

// Suggestion returns a question that names the subcommands of cmd for which arg may be a
// typo. It returns "" if there are none.
func Suggestion(cmd *cobra.Command, arg string) string {
	cmd.SuggestionsMinimumDistance = 2 // suggest names that differ in two letters at most
	names := cmd.SuggestionsFor(arg)
	if len(names) == 0 {
		return ""
	}
	return ", did you mean " + strings.Join(names, " or ") + "?"
}

// RunsCMD is the annotation that states when a command runs a CMD: always, only if a CMD
// follows --, or unless --watch or --step-down is given. The exit code of a failure depends
// on it.
const (
	RunsCMD     = "runs CMD"
	Always      = "always"
	AfterDashes = "after --"
	UnlessWatch = "unless --watch"
)

// Text holds the value of a text flag, and whether the flag was given.
type Text struct {
	Value string // the default, unless Given is true
	Given bool
}

func (t *Text) String() string { return t.Value }

// Type returns "string": refuseEmpty and the help then treat the flag as one of pflag's own
// text flags.
func (*Text) Type() string { return "string" }

// Set records the value and that the flag was given.
func (t *Text) Set(text string) error {
	*t = Text{text, true}
	return nil
}

// Data is the value of --data: the text itself, or @FILE.
type Data struct{ Text }

// Flag adds --data to fl.
func (d *Data) Flag(fl *pflag.FlagSet) {
	fl.Var(d, "data", "store `TEXT` in the record; @FILE: from FILE")
}

// Option returns the record option for the value of --data. It returns nil if the flag was
// not given.
func (d *Data) Option(stdin io.Reader) (leasehold.RecordOption, error) {
	if !d.Given {
		return nil, nil
	}
	path, isFile := strings.CutPrefix(d.Value, "@")
	if !isFile {
		return leasehold.WithData([]byte(d.Value)), nil
	}
	var b []byte
	var err error
	if path == "-" {
		b, err = io.ReadAll(stdin)
	} else {
		b, err = plainfile.ReadNamed(path)
	}
	if err != nil {
		return nil, failure.Misusef("--data: cannot read %s: %v", path, failure.WithoutPath(err))
	}
	return leasehold.WithData(b), nil
}

// Duration holds the value of a duration flag, and whether the flag was given. It accepts
// the format of time.ParseDuration. Like timeout(1) and flock(1), it also accepts a bare
// number of seconds.
type Duration struct {
	time.Duration               // the default, unless Given is set
	Min           time.Duration // the least value that is accepted
	Given         bool
}

// Lasting returns a Duration whose default is d.
func Lasting(d time.Duration) Duration { return Duration{Duration: d} }

func (f *Duration) String() string {
	if f.Duration == 0 {
		return ""
	}
	return wording.Duration(f.Duration)
}

// Type returns "duration". The help puts the default of a flag of type "string" in quotes,
// and this default must have none.
func (*Duration) Type() string { return "duration" }

// Set parses the value.
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

// Check adds --check, or --check=DURATION, where DURATION limits how long the records are
// observed. Without DURATION the limit is a minute, three times the default lease: a holder
// with a lease of hours must not make the user wait for hours.
func Check(fl *pflag.FlagSet, d *Duration) {
	fl.Var(d, "check", "observe for `DURATION` at most, and show which holders are live, dead or unknown; --check=0: until all are known")
	fl.Lookup("check").NoOptDefVal = wording.Duration(time.Minute)
}

// SortKey adds --sort-key.
func SortKey(fl *pflag.FlagSet, value *string) {
	fl.StringVar(value, "sort-key", "", "sort key `VALUE`, in a table that has one")
}

// StoreArgs returns the given flags that choose the store and its layout.
func StoreArgs(cmd *cobra.Command) []string {
	var args []string
	for _, name := range []string{"table", "file", "layout", "attr", "region", "failover", "profile", "endpoint-url"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			args = append(args, "--"+name, f.Value.String())
		}
	}
	return args
}

// StoreFlags returns StoreArgs, quoted for a shell, for commands that messages suggest.
func StoreFlags(cmd *cobra.Command) string {
	var words strings.Builder
	for _, arg := range StoreArgs(cmd) {
		words.WriteString(" " + wording.ShellWord(arg))
	}
	return words.String()
}
