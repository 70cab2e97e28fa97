package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// globalFlags are the flags of every command.
type globalFlags struct {
	store.Settings
	json, quiet, verbose bool
}

// cobra has this for the whole process, so that it is set before anything runs: the order
// in newRoot is the order of the help.
func init() { cobra.EnableCommandSorting = false }

// newRoot builds the command tree.
func (a *app) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "leasehold COMMAND [flags]",
		Short: "Distributed locks on Amazon DynamoDB, for shells and operators",
		Long: `Distributed locks on Amazon DynamoDB, for shells and operators.
New here? Try leasehold demo: it needs no AWS and no set-up.`,
		Example: `  leasehold run nightly-report -- ./report.sh
  leasehold ls`,
		Version:           thisBuild().String(),
		Args:              cobra.ArbitraryArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // completion.go has it
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.say.Configure(a.flags.quiet, a.flags.json)
			a.say.SetStoreFlags(storeFlags(cmd))
			return refuseEmpty(cmd)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return usageOf(cmd, "unknown command %s%s", visible.Name(args[0]), suggestion(cmd, args[0]))
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetHelpFunc(printHelp)
	root.SetHelpCommand(newHelp(root))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageOf(cmd, "%s", flagError(cmd, err)) })
	root.SetVersionTemplate("leasehold {{.Version}}\n")
	root.Flags().SortFlags = false
	root.Flags().Bool("version", false, "print the version")

	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVarP(&a.flags.Table, "table", "t", "", "lock table, `NAME` or ARN")
	f.StringVar(&a.flags.File, "file", "", "use the local store in `PATH` instead of DynamoDB: locks among processes on this machine that use PATH")
	f.StringVar(&a.flags.LayoutName, "layout", layout.Native{}.Name(), "record `LAYOUT`: "+strings.Join(layout.Names(), ", "))
	f.Var(&a.flags.Attributes, "attr", "attribute name that differs from the layout's, `ROLE=NAME`; roles: key, sort, ttl")
	f.StringVar(&a.flags.Region, "region", "", "AWS `REGION`")
	f.StringVar(&a.flags.Profile, "profile", "", "AWS `PROFILE`")
	f.StringVar(&a.flags.Endpoint, "endpoint-url", "", "DynamoDB `URL`, such as that of leasehold local")
	f.BoolVar(&a.flags.json, "json", false, "print JSON")
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, "print errors only; that KEY is held is none")
	f.BoolVarP(&a.flags.verbose, "verbose", "v", false, "log every request: key, attempt, capacity, time, outcome")

	root.AddGroup(
		&cobra.Group{ID: "hold", Title: "Hold:"},
		&cobra.Group{ID: "look", Title: "Inspect and repair:"},
		&cobra.Group{ID: "setup", Title: "Set up:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, cmd := range cmds {
			cmd.GroupID = group
			cmd.Flags().SortFlags = false
			root.AddCommand(cmd)
		}
	}
	add("hold", a.newRun(), a.newAcquire(), a.newRenew(), a.newRelease(), a.newElect())
	add("look", a.newList(), a.newGet(), a.newBreak(), a.newForget(), a.newSemaphore(), a.newUI(), a.newDoctor())
	add("setup", a.newTable(), a.newBench(), a.newLocal(), a.newDemo(), a.newCompletion(), a.newVersion())
	root.AddCommand(
		newTopic("exit-codes", "What the exit codes mean", exitCodesText),
		newTopic("environment", "Variables that leasehold reads, and sets for CMD", environmentText),
		a.newJSONTopic(),
		newTopic("events", "What run and elect report, for programs", eventsText),
		a.newDemoProcess(),
	)
	a.complete(root)
	return root
}

// storeArgs returns the given flags that choose the store and its layout.
func storeArgs(cmd *cobra.Command) []string {
	var args []string
	for _, name := range []string{"table", "file", "layout", "attr", "region", "profile", "endpoint-url"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			args = append(args, "--"+name, f.Value.String())
		}
	}
	return args
}

// storeFlags is storeArgs as words of a shell: a command that a message tells to type
// needs them too.
func storeFlags(cmd *cobra.Command) string {
	var words strings.Builder
	for _, arg := range storeArgs(cmd) {
		words.WriteString(" " + wording.ShellWord(arg))
	}
	return words.String()
}

// refuseEmpty refuses flags with an empty value. In a script that is usually a
// variable that was not set, and without the flag the command would do
// something else.
func refuseEmpty(cmd *cobra.Command) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case err != nil, f.Value.Type() != "string", f.Value.String() != "":
		case f.Name == "data", f.Name == "value": // these may be empty
		default:
			err = usageOf(cmd, "--%s is empty: give it a value, or leave it out", f.Name)
		}
	})
	return err
}

func suggestion(cmd *cobra.Command, arg string) string {
	names := cmd.SuggestionsFor(arg)
	if len(names) == 0 {
		return ""
	}
	return ", did you mean " + strings.Join(names, " or ") + "?"
}

// oneKey accepts exactly one argument, the key.
func oneKey(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usageOf(cmd, "KEY is missing")
	case len(args) > 1:
		return usageOf(cmd, "only one KEY is allowed: remove %s", visible.Name(args[1]))
	case args[0] == "":
		return usageOf(cmd, "KEY is empty")
	}
	return nil
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageOf(cmd, "%s takes no arguments: remove %s", cmd.Name(), visible.Name(args[0]))
	}
	return nil
}

// usageOf is an error of misuse with a reference to the help of cmd.
func usageOf(cmd *cobra.Command, format string, args ...any) error {
	return misuse.Errorf("%s: see %s --help", fmt.Sprintf(format, args...), cmd.CommandPath())
}
