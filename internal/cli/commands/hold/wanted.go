package hold

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/semaphore"
)

// severalFlags adds the flags of run for several keys.
func severalFlags(fl *pflag.FlagSet, f *wantedFlags) {
	fl.StringArrayVarP(&f.more, "key", "k", nil, "hold `KEY` too; may be repeated")
	fl.BoolVar(&f.Any, "any", false, "hold only one of several keys, the first free one")
}

// name sets the keys that the user has named, without duplicates.
func (f *wantedFlags) name(args []string) {
	f.Keys = nil
	for _, key := range slices.Concat(args, f.more) {
		if !slices.Contains(f.Keys, key) {
			f.Keys = append(f.Keys, key)
		}
	}
}

// checkSeveral refuses contradictory flags.
func checkSeveral(cmd *cobra.Command, f *wantedFlags) error {
	keys := f.Keys
	counted := cmd.Flags().Changed("permits")
	broken := slices.IndexFunc(keys, func(key string) bool { return strings.Contains(key, "\n") })
	switch {
	case slices.Contains(keys, ""):
		return misuse.Of(cmd, "KEY is empty")
	case broken >= 0 && len(keys) > 1 && !f.Any:
		return misuse.Of(cmd, "KEY %s has a line break, and CMD gets several keys one a line: hold it alone", wording.Name(keys[broken]))
	case counted && (f.Permits < 1 || f.Permits > semaphore.MostPermits):
		return misuse.Of(cmd, "-p %d: use 1 to %d permits", f.Permits, semaphore.MostPermits)
	case counted && f.Any:
		return misuse.Of(cmd, "-p and --any: use one of them")
	case counted && len(keys) > 1:
		return misuse.Of(cmd, "-p and several keys: use one of them")
	}
	return nil
}

// once is work to be done once.
type once struct {
	label string        // once for this label
	every time.Duration // once in each period of this length
}

// onceFlags adds the flags with which CMD does its work once.
func onceFlags(fl *pflag.FlagSet, o *once) {
	fl.Var(arguments.Duration{D: &o.every, Min: protocol.ShortestPeriod}, "every", "run CMD once in each `DURATION` of UTC")
	fl.StringVar(&o.label, "once", "", "run CMD once for `LABEL`: a date, a commit")
}

// completeOnce checks --every and --once, and sets the option for them.
func (f *wantedFlags) completeOnce(cmd *cobra.Command, l layout.Layout, proto protocol.Protocol) error {
	labelled, periodic := cmd.Flags().Changed("once"), cmd.Flags().Changed("every")
	name := "--every"
	if labelled {
		name = "--once"
	}
	_, marks := proto.(protocol.Native)
	switch {
	case !labelled && !periodic:
		return nil
	case labelled && periodic:
		return misuse.Of(cmd, "--every and --once: use one of them")
	case f.Permits > 0 || len(f.more) > 0:
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
