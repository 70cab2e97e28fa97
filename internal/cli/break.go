package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
)

type breakFlags struct {
	token     int64
	ifVersion string
	yes       bool
	sortKey   string
}

func (a *app) newBreak() *cobra.Command {
	var f breakFlags
	cmd := &cobra.Command{
		Use:   "break KEY [flags]",
		Short: "Break one grant that is stuck",
		Long: `Free KEY, whoever holds it.

Shows the record, observes whether its holder still renews, and asks. Breaks
only that grant: if KEY has been granted again by then, nothing happens (exit
code 1). Of a semaphore it breaks one permit: the one with TOKEN. A live holder
may work on for some seconds: in that time only fenced writes are safe.`,
		Example: `  leasehold break import/7
  leasehold break import/7 --token 1764230400000042 --yes`,
		ValidArgsFunction: a.completeKeys(heldRecord),
		Args:              oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.yes && f.token == 0 && f.ifVersion == "":
				return usageOf(cmd, "--yes needs --token, or --if-version for a grant without one, so that no other grant is broken")
			case !f.yes && (!isTerminal(a.Stdin) || !isTerminal(a.Stderr)):
				return usageOf(cmd, "break asks at a terminal, and there is none: use --token and --yes")
			}
			s, err := a.open(cmd, "")
			if err != nil {
				return err
			}
			defer s.close()
			key := completeKey(s.layout, leasehold.Key{Partition: args[0], Sort: f.sortKey})
			return answer(s.withLocks(cmd.Context(), func(ctx context.Context, locks *leasehold.Client) error {
				return a.breakGrant(ctx, s, locks, key, f)
			}))
		},
	}
	fl := cmd.Flags()
	fl.Int64Var(&f.token, "token", 0, "break only the grant with this `TOKEN`; needed with --yes")
	fl.StringVar(&f.ifVersion, "if-version", "", "break only if the record still has this `VERSION`; for grants of other libraries, which have no token")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not observe, do not ask")
	fl.StringVar(&f.sortKey, "sort-key", "", "sort key `VALUE`, in a table that has one")
	return cmd
}

func (a *app) breakGrant(ctx context.Context, s *store, locks *leasehold.Client, key leasehold.Key, f breakFlags) error {
	wanted := func(r leasehold.Record) bool {
		return (f.token == 0 || f.token == r.Token) && (f.ifVersion == "" || f.ifVersion == r.Version)
	}
	r, err := holder(ctx, locks, key, wanted)
	if n, is := permitsIn(s.layout, err); is {
		r, err = holderOfPermit(ctx, locks, key.Partition, n, wanted)
	}
	switch {
	case err != nil:
		return cause(ctx, err)
	case r.Released:
		return exit(codeNo, usagef("%s is not held: nothing to break", printable(key.String())))
	case !wanted(r):
		return &leasehold.ChangedError{Now: r}
	}
	var opts []leasehold.BreakOption
	if f.ifVersion != "" {
		opts = append(opts, leasehold.IfUnrenewed())
	}
	if !f.yes {
		o, err := a.confirmBreak(ctx, s, locks, r)
		if err != nil {
			return err
		}
		if o.liveness == dead {
			opts = append(opts, leasehold.IfUnrenewed())
		}
		r = o.record
	}
	if err := locks.Break(ctx, r, opts...); err != nil {
		return cause(ctx, err)
	}
	if a.flags.json {
		return json.NewEncoder(a.Stdout).Encode(recordJSON{Table: s.table, Record: r})
	}
	token := ""
	if r.Token != 0 {
		token = fmt.Sprintf(" (token %d)", r.Token)
	}
	_, err = fmt.Fprintf(a.Stdout, "broke the grant of %s to %s%s\n", printable(r.Key.String()), shortOwner(r.Owner), token)
	return err
}

// confirmBreak shows the record, observes it for its lease and asks.
func (a *app) confirmBreak(ctx context.Context, s *store, locks *leasehold.Client, r leasehold.Record) (observation, error) {
	if err := a.showRecord(a.Stderr, s, row{record: r}); err != nil {
		return observation{}, err
	}
	by, err := newObserver(s, locks)
	if err != nil {
		return observation{}, err
	}
	o := a.observeWithProgress(ctx, by, []leasehold.Record{r}, "the holder")[0]
	switch {
	case o.err != nil:
		return o, o.err
	case o.gone:
		return o, fmt.Errorf("%w: %s in table %s", leasehold.ErrNotFound, printable(r.Key.String()), s.table)
	case o.record.Released, grantOf(o.record) != grantOf(r):
		return o, &leasehold.ChangedError{Now: o.record}
	case o.liveness == live && o.heartbeat.shared:
		fmt.Fprintln(a.Stderr, "The holder is alive: it has just renewed its session. After a break it may work on for up to twenty minutes.")
	case o.liveness == live:
		fmt.Fprintln(a.Stderr, "The holder is alive: it has just renewed. After a break it may work on for some seconds.")
	case by.expiry == layout.WallClock:
		fmt.Fprintf(a.Stderr, "The record has expired (%s): its holder is dead or stuck.\n", leaseText(o.record, a.Now()))
	default:
		fmt.Fprintf(a.Stderr, "The holder has not renewed for one lease (%s): it is dead or stuck.\n", shortDuration(o.heartbeat.lease))
	}
	yes, err := a.ask(ctx, fmt.Sprintf("Break the grant of %s? [y/N] ", printable(r.Key.String())))
	if err == nil && !yes {
		err = exit(codeNo, errors.New("nothing was broken"))
	}
	return o, err
}
