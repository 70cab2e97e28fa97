package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/permits"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
)

type getFlags struct {
	check, data, held, raw bool
	checkFor               time.Duration
	sortKey                string
}

func (a *app) newGet() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get KEY [flags]",
		Short: "Show one record",
		Long: `Show the record of KEY. Exit code 1 if there is none.
Of a semaphore: how many permits there are, and who holds them.
former is who had the key last or, while it is held, who had it before: until
when, and how that ended (released, taken over, broken), if the record tells.

With --held it prints nothing: exit code 0 if KEY is held, 1 if it is not. A
record whose holder has died says held; with --check too, exit code 0 means
that a live holder has it.`,
		Example: `  leasehold get deploy/prod
  leasehold get deploy/prod --data > state.json
  if leasehold get deploy/prod --held; then echo busy; fi`,
		ValidArgsFunction: a.completeKeys(anyRecord),
		Args:              oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.check && f.data:
				return usageOf(cmd, "--check and --data: use one of them")
			case f.raw && (f.check || f.data || f.held):
				return usageOf(cmd, "--raw shows what is stored, and nothing else: leave out the other flag")
			case f.held && f.data:
				return usageOf(cmd, "--held and --data: use one of them")
			case !f.check && cmd.Flags().Changed("for"):
				return usageOf(cmd, "--for is for --check: add --check, or leave out --for")
			}
			return a.onTable(cmd, leasehold.Config{}, func(ctx context.Context, s *store.Store, locks *leasehold.Client) error {
				key := store.CompleteKey(s.Layout, leasehold.Key{Partition: args[0], Sort: f.sortKey})
				switch {
				case f.data && !s.Layout.Capabilities().Data:
					return &leasehold.UnsupportedError{Layout: s.Layout.Name(), Feature: "data"}
				case f.raw:
					return a.getRaw(ctx, s, key)
				case f.held:
					return a.getHeld(ctx, s, locks, key, f)
				}
				return a.getRecord(ctx, s, locks, key, f)
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.check, "check", false, "observe the record and show whether its holder is live or dead")
	checkForFlag(fl, &f.checkFor)
	fl.BoolVar(&f.data, "data", false, "print only the data, byte for byte; at a terminal, escaped")
	fl.BoolVar(&f.held, "held", false, "print nothing: exit code 0 if KEY is held, 1 if it is not")
	fl.BoolVar(&f.raw, "raw", false, "print what is stored under KEY, damaged or not, as DynamoDB JSON")
	fl.StringVar(&f.sortKey, "sort-key", "", "sort key `VALUE`, in a table that has one")
	return cmd
}

func (a *app) getRecord(ctx context.Context, s *store.Store, locks *leasehold.Client, key leasehold.Key, f getFlags) error {
	r, err := holders.Get(ctx, locks, key)
	if n, is := permits.In(s.Layout, err); is {
		if f.data {
			return misuse.Errorf("%s is a semaphore: each permit has its own data: use leasehold get %s --data", wording.Name(key.Partition), wording.ShellWord(key.Partition+"/N"))
		}
		return a.showSemaphore(ctx, s, locks, key.Partition, n, f.check, f.checkFor)
	}
	if err != nil {
		return cause(ctx, err)
	}
	if f.data {
		return a.Stdout.Data(r.Data)
	}
	one := []leasehold.Record{r}
	by, err := s.Observer(locks)
	if err != nil {
		return err
	}
	if err := by.Reader.UnderSessions(ctx, one); err != nil {
		return cause(ctx, err)
	}
	r = one[0]
	shown := say.Record{Table: s.Table, Record: r}
	if f.check && !r.Released {
		by.Limit = f.checkFor
		o := a.say.Observe(ctx, by, []leasehold.Record{r}, "the holder")[0]
		switch {
		case o.Err != nil && o.State != holders.Unknown:
			return o.Err
		case o.Err != nil: // it ended early: with what is known
			return errors.Join(a.Stdout.Record(say.Record{Table: s.Table, Record: o.Record, Holder: o.State}, a.flags.json, a.Now()), o.Err)
		case o.Gone:
			return notFound(s, key)
		}
		shown.Record, shown.Holder = o.Record, o.State
	}
	return a.Stdout.Record(shown, a.flags.json, a.Now())
}
