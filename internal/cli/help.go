package cli

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// printHelp prints the help of a command, with what is used every day.
func printHelp(cmd *cobra.Command, _ []string) { printHelpOf(cmd, false) }

// printHelpOf prints the help of a command. all: the advanced commands and flags too.
func printHelpOf(cmd *cobra.Command, all bool) {
	w := cmd.OutOrStdout()
	if cmd.Long == "" {
		fmt.Fprintln(w, cmd.Short+".")
	} else {
		fmt.Fprintln(w, cmd.Long)
	}
	if !cmd.Runnable() && !cmd.HasSubCommands() {
		return // a topic
	}
	fmt.Fprintf(w, "\nUsage:\n  %s\n", cmd.UseLine())
	if cmd.HasAvailableSubCommands() {
		printCommands(w, cmd, all)
	}
	flags := cmd.Flags()
	if cmd.HasParent() {
		flags = cmd.LocalFlags()
	}
	shown, rest := split(cmd, flags)
	fmt.Fprintf(w, "\nFlags:\n%s", shown.FlagUsagesWrapped(helpWidth))
	if all && rest.HasFlags() {
		fmt.Fprintf(w, "\nAdvanced flags:\n%s", rest.FlagUsagesWrapped(helpWidth))
	}
	if hasDuration(shown) || all && hasDuration(rest) {
		fmt.Fprint(w, "\n"+durationNote+"\n")
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasParent() {
		fmt.Fprintln(w, "\nGlobal flags: leasehold --help")
	}
	if hasAdvanced(cmd) && !all {
		fmt.Fprintf(w, "\nThere is more: leasehold help%s %s\n", strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), advancedWord)
	}
	if !cmd.HasParent() {
		fmt.Fprint(w, "\nTopics:\n  leasehold help exit-codes, leasehold help environment, leasehold help events,\n  leasehold help json\n")
	}
}

// helpWidth is how wide a line of help may be: a terminal's usual 80 columns.
const helpWidth = 80

const durationNote = "DURATION is a number of seconds, as in timeout(1), or such as 90s, 10m or 1h30m."

func hasDuration(flags *pflag.FlagSet) bool {
	found := false
	flags.VisitAll(func(f *pflag.Flag) { found = found || f.Value.Type() == arguments.Duration{}.Type() })
	return found
}

func printCommands(w io.Writer, cmd *cobra.Command, all bool) {
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	widest := 11 // as cobra's own, which counts hidden commands too
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			widest = max(widest, len(sub.Name()))
		}
	}
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s\n", g.Title)
		for _, sub := range cmd.Commands() {
			if sub.GroupID == g.ID && sub.IsAvailableCommand() && (all || !isAdvancedCommand(sub)) {
				fmt.Fprintf(w, "  %-*s %s\n", widest, sub.Name(), sub.Short)
			}
		}
	}
}

// newHelp is the command help, for commands and topics.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND] [advanced]", Short: "Help about a command or a topic", Hidden: true, DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			all := len(args) > 0 && args[len(args)-1] == advancedWord
			if all {
				args = args[:len(args)-1]
			}
			found, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return misuse.Of(root, "unknown command or topic %s", visible.Name(strings.Join(args, " ")))
			}
			found.InitDefaultHelpFlag()
			if all && found.Runnable() {
				printHelpOf(found, true)
				return nil
			}
			return found.Help()
		},
	}
}

// What help has to say that is about no command.
var (
	//go:embed topics/exit-codes.txt
	exitCodesText string
	//go:embed topics/environment.txt
	environmentText string
	//go:embed topics/events.txt
	eventsText string
	//go:embed topics/json.txt
	jsonText string
)

func newTopic(name, short, text string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Long: strings.TrimSuffix(text, "\n")}
}

// newJSONTopic is leasehold help json, and with --json the schema itself.
func newJSONTopic(in *invocation.Invocation) *cobra.Command {
	cmd := newTopic("json", "What --json prints, and the columns in a pipe", jsonText)
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if in.JSON {
			_, _ = cmd.OutOrStdout().Write(say.Schema)
			return
		}
		printHelp(cmd, args)
	})
	return cmd
}
