package cli

import (
	"bytes"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// tree returns the root command with all its subcommands, as it is before it parses
// arguments.
func tree() *cobra.Command { return newRoot(invocation.New(envOf(nil))) }

// everyCommand calls fn for each command and topic that a user can get help for.
func everyCommand(cmd *cobra.Command, fn func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	fn(cmd)
	for _, sub := range cmd.Commands() {
		everyCommand(sub, fn)
	}
}

func helpOf(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.InitDefaultHelpFlag()
	lab.OK(t, cmd.Help())
	return out.String()
}

// screen is the greatest number of lines that the help of one command may have.
const screen = 50

func TestHelpShowsEveryFlagAndCommandOnOneScreen(t *testing.T) {
	everyCommand(tree(), func(cmd *cobra.Command) {
		if !cmd.Runnable() {
			return // cmd is a help topic, not a command
		}
		text := helpOf(t, cmd)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(text, "--"+f.Name+" ") {
				t.Errorf("%s: --%s is nowhere", cmd.CommandPath(), f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			if !sub.Hidden && sub.Runnable() && !strings.Contains(text, "\n  "+sub.Name()+" ") {
				t.Errorf("%s is nowhere", sub.CommandPath())
			}
		}
		if lines := strings.Count(text, "\n"); cmd.HasParent() && lines > screen { // the root command may be longer, because its help lists all commands
			t.Errorf("%s: %d lines of help", cmd.CommandPath(), lines)
		}
	})
}

func TestHelpFitsTerminalOf80Columns(t *testing.T) {
	everyCommand(tree(), func(cmd *cobra.Command) {
		for _, line := range strings.Split(helpOf(t, cmd), "\n") {
			if columns := utf8.RuneCountInString(line); columns > 80 && !strings.Contains(line, "arn:") { // a line with an ARN may be longer, because the ARN cannot be shorter
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), columns, line)
			}
		}
	})
}

func TestDurationFlagsAcceptSecondsAsHelpStates(t *testing.T) {
	found := 0
	everyCommand(tree(), func(cmd *cobra.Command) {
		timed := false
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			usage := strings.Contains(f.Usage, "DURATION")
			if _, ok := f.Value.(*arguments.Duration); ok != usage && f.Name != "grace" {
				t.Errorf("%s --%s: a duration flag: %v; its help says DURATION: %v", cmd.CommandPath(), f.Name, ok, usage)
			}
			if f.Value.Type() != "duration" {
				return
			}
			timed, found = true, found+1
			if err := f.Value.Set("30"); err != nil || f.Value.String() != "30s" {
				t.Errorf("%s --%s 30: %s, %v", cmd.CommandPath(), f.Name, f.Value, err)
			}
		})
		if timed && !strings.Contains(helpOf(t, cmd), "\nDURATION is a number of seconds") {
			t.Errorf("%s --help does not say how a DURATION is written", cmd.CommandPath())
		}
	})
	if found < 8 {
		t.Errorf("%d flags found", found)
	}
}

func TestHelpListsEveryCommand(t *testing.T) {
	root := tree()
	text := helpOf(t, root)
	everyCommand(root, func(cmd *cobra.Command) {
		if cmd.Parent() == root && !strings.Contains(text, "\n  "+cmd.Name()+" ") && !strings.Contains(text, "leasehold help "+cmd.Name()) {
			t.Errorf("leasehold --help does not name %s", cmd.Name())
		}
	})
	if cmd, _, err := root.Find([]string{"completion"}); err != nil || cmd == root { // the root command accepts any arguments
		t.Errorf("there is no completion, %v", err)
	}
}

func TestHelpListsEveryFieldOfEvents(t *testing.T) {
	text, _ := helpText("events")
	fields := reflect.TypeFor[say.Event]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
			t.Errorf("leasehold help events does not say what %s is", name)
		}
	}
}
