package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// advanced are the commands and flags that help shows when asked for by that word, by
// the path of their command. Everybody else has to read past them.
var advanced = map[string]struct{ commands, flags []string }{
	"leasehold":         {[]string{"forget", "semaphore", "bench"}, []string{"layout", "attr", "endpoint-url", "max-skew"}},
	"leasehold run":     {nil, []string{"shared", "line", "sort-key", "data", "signal", "grace", "background", "owner", "events", "metrics"}},
	"leasehold acquire": {nil, []string{"line", "sort-key", "data"}},
	"leasehold renew":   {nil, []string{"data"}},
	"leasehold release": {nil, []string{"data"}},
	"leasehold elect":   {nil, []string{"line", "signal", "grace", "background", "owner", "events"}},
	"leasehold ls":      {nil, []string{"for", "partition", "every"}},
	"leasehold get":     {nil, []string{"for", "raw", "sort-key"}},
	"leasehold break":   {nil, []string{"if-version", "for", "damaged", "if-raw", "sort-key"}},
	"leasehold forget":  {nil, []string{"sort-key"}},
	"leasehold ui":      {nil, []string{"unsafe-listen", "token-file", "reads", "every"}},
	"leasehold doctor":  {nil, []string{"access", "prefix"}},
	"leasehold table":   {[]string{"rewrite", "terraform", "cloudformation"}, nil},
	"leasehold bench":   {nil, []string{"write-price", "read-price"}},
}

// advancedWord asks for them, behind a command's help.
const advancedWord = "advanced"

func isAdvancedCommand(cmd *cobra.Command) bool {
	return cmd.HasParent() && slices.Contains(advanced[cmd.Parent().CommandPath()].commands, cmd.Name())
}

// hasAdvanced reports whether the help of cmd leaves something out.
func hasAdvanced(cmd *cobra.Command) bool {
	_, some := advanced[cmd.CommandPath()]
	return some
}

// split returns the everyday flags of cmd, and the advanced ones.
func split(cmd *cobra.Command, flags *pflag.FlagSet) (everyday, rest *pflag.FlagSet) {
	everyday, rest = pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	everyday.SortFlags, rest.SortFlags = false, false
	names := advanced[cmd.CommandPath()].flags
	flags.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(names, f.Name) {
			rest.AddFlag(f)
		} else {
			everyday.AddFlag(f)
		}
	})
	return everyday, rest
}
