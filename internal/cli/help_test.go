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
)

// tree are the commands, of whom nobody has typed anything.
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
	if cmd.Runnable() {
		printHelpOf(cmd, true)
	} else if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestHelpShowsWhatIsUsedEveryDayAndOneWordShowsTheRest(t *testing.T) {
	known := map[string]bool{}
	everyCommand(tree(), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		known[path] = true
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.InitDefaultHelpFlag()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		brief, whole := out.String(), helpOf(t, cmd)
		word := "leasehold help" + strings.TrimPrefix(path, "leasehold") + " advanced\n"
		left := 0
		in := func(text, item string) bool { return strings.Contains(text, "\n"+item) }
		for _, name := range advanced[path].commands {
			if item := "  " + name + " "; in(brief, item) || !in(whole, item) {
				t.Errorf("%s: the advanced command %s is met first, or not at all", path, name)
			}
			left++
		}
		for _, name := range advanced[path].flags {
			pattern := regexp.MustCompile(`(?m)^  (-., |    )--` + name + ` `)
			if cmd.Flags().Lookup(name) == nil || pattern.MatchString(brief) || !pattern.MatchString(whole) {
				t.Errorf("%s: the advanced flag --%s is met first, or not at all", path, name)
			}
			left++
		}
		if says := strings.Contains(brief, word); says != (left > 0) {
			t.Errorf("%s --help leaves %d out, and says how to see them: %v", path, left, says)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if cmd.Runnable() && !strings.Contains(whole, "--"+f.Name+" ") {
				t.Errorf("%s: --%s is nowhere", path, f.Name)
			}
		})
		if flags := strings.Count(brief, "  --") + strings.Count(brief, ", --"); flags > 12 {
			t.Errorf("%s: %d flags for every day", path, flags)
		}
	})
	for path := range advanced {
		if !known[path] {
			t.Errorf("%s is no command", path)
		}
	}
}

func TestEveryLineOfHelpFitsATerminalOf80Columns(t *testing.T) {
	everyCommand(tree(), func(cmd *cobra.Command) {
		for _, line := range strings.Split(helpOf(t, cmd), "\n") {
			if columns := utf8.RuneCountInString(line); columns > 80 && !strings.Contains(line, "arn:") { // an ARN has no shorter form
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), columns, line)
			}
		}
	})
}

func TestEveryFlagOfADurationTakesABareNumberOfSecondsAndTheHelpSaysSo(t *testing.T) {
	found := 0
	everyCommand(tree(), func(cmd *cobra.Command) {
		timed := false
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			usage := strings.Contains(f.Usage, "DURATION")
			if _, ok := f.Value.(arguments.Duration); ok != usage && f.Name != "grace" {
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
		if timed && !strings.Contains(helpOf(t, cmd), durationNote) {
			t.Errorf("%s --help does not say how a DURATION is written", cmd.CommandPath())
		}
	})
	if found < 8 {
		t.Errorf("%d flags found", found)
	}
}

func TestEveryCommandIsInTheHelp(t *testing.T) {
	root := tree()
	text := helpOf(t, root)
	everyCommand(root, func(cmd *cobra.Command) {
		if cmd.Parent() == root && !strings.Contains(text, "\n  "+cmd.Name()+" ") && !strings.Contains(text, "leasehold help "+cmd.Name()) {
			t.Errorf("leasehold --help does not name %s", cmd.Name())
		}
	})
	if cmd, _, err := root.Find([]string{"completion"}); err != nil || cmd == root { // the root takes any arguments
		t.Errorf("there is no completion, %v", err)
	}
}

func TestEveryFieldOfAnEventIsInItsHelp(t *testing.T) {
	text := eventsText
	fields := reflect.TypeFor[say.Event]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
			t.Errorf("leasehold help events does not say what %s is", name)
		}
	}
}
