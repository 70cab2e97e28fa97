package hold

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// once is work that is done once.
type once struct {
	label string        // for that
	every time.Duration // in each period of that length
}

// onceFlags say that CMD does its work once.
func onceFlags(fl *pflag.FlagSet, o *once) {
	fl.Var(arguments.Duration{D: &o.every, Min: protocol.ShortestPeriod}, "every", "run CMD once in each `DURATION`, counted in UTC; again if it failed")
	fl.StringVar(&o.label, "once", "", "run CMD once for `LABEL`, a date, a commit, a hash; again if it failed")
}

// completeOnce checks --every and --once, and says what they ask for.
func (f *wantedFlags) completeOnce(cmd *cobra.Command, l layout.Layout, proto protocol.Protocol) error {
	labelled, periodic := cmd.Flags().Changed("once"), cmd.Flags().Changed("every")
	name := "--every"
	if labelled {
		name = "--once"
	}
	_, marks := proto.(protocol.Marking)
	switch {
	case !labelled && !periodic:
		return nil
	case labelled && periodic:
		return misuse.Of(cmd, "--every and --once: use one of them")
	case f.Permits > 1 || len(f.more) > 0:
		return misuse.Of(cmd, "%s is for one key: leave it out, or -p and -k", name)
	case !marks:
		return misuse.Of(cmd, "%s: records of layout %s do not say what was done: leave it out, or give each day a key of its own", name, l.Name())
	case labelled:
		if problem := protocol.LabelProblem(f.once.label); problem != "" {
			return misuse.Of(cmd, "--once: %s", problem)
		}
		f.Once = leasehold.Once(f.once.label)
		return nil
	}
	if problem := protocol.PeriodProblem(f.once.every); problem != "" {
		return misuse.Of(cmd, "--every: %s", problem)
	}
	f.Once = leasehold.Every(f.once.every)
	return nil
}
