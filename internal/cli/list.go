package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/permits"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// defaultCheckFor is how long ls and get --check observe at most: three default
// leases, so that a holder with a lease of hours keeps nobody waiting.
const defaultCheckFor = time.Minute

type listFlags struct {
	all, check, watch bool
	checkFor, every   time.Duration
	partition, prefix string
	bare              bool // data and attributes are not shown: a record may have 400 KB of them
}

// checkForFlag is --for, of commands that have --check.
func checkForFlag(fl *pflag.FlagSet, d *time.Duration) {
	*d = defaultCheckFor
	fl.Var(durationFlag{d: d}, "for", "with --check, observe at most `DURATION`; a holder not known by then is unknown; 0: until all are known")
}

// onePrefix accepts at most one argument, the PREFIX.
func onePrefix(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageOf(cmd, "only one PREFIX is allowed: remove %s", visible.Name(args[1]))
	}
	return nil
}

func (a *app) newList() *cobra.Command {
	f := listFlags{every: 2 * time.Second}
	cmd := &cobra.Command{
		Use:   "ls [PREFIX] [flags]",
		Short: "List who holds what",
		Long: `List held locks whose key begins with PREFIX.

Reads the whole table, unless --partition is given; then the rows of semaphores,
to say which locks are permits.

A record alone does not show whether its holder is alive: --check reads the
records again, for one lease at most. It writes each row as soon as its holder
is known: live once it has renewed, dead once it has not for its lease, unknown
if --for or Ctrl-C ends that before. It says first what this may cost. Records
are read again by key (BatchGetItem) or with the whole listing, whichever uses
fewer read units.

--watch lists again and again: what comes and goes in between is not seen. On a
terminal it fills the screen, and gives it back in the end. In a pipe it writes
what is held, then a line for each change, which begins with the time and ends
with the state: held, released or deleted.`,
		Example: `  leasehold ls import/
  leasehold ls --check
  leasehold ls --json | jq -r 'select(.heldMs > 3600000) | .key'`,
		ValidArgsFunction: a.completeKeys(heldRecord),
		Args:              onePrefix,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.prefix = args[0]
			}
			switch {
			case f.prefix != "" && f.partition != "":
				return usageOf(cmd, "PREFIX and --partition: use one of them")
			case f.watch && f.check:
				return usageOf(cmd, "--watch and --check: use one of them")
			case !f.check && cmd.Flags().Changed("for"):
				return usageOf(cmd, "--for is for --check: add --check, or leave out --for")
			case !f.watch && cmd.Flags().Changed("every"):
				return usageOf(cmd, "--every is for --watch: add --watch, or leave out --every")
			}
			if f.watch {
				return a.watchList(cmd, f)
			}
			return a.onTable(cmd, leasehold.Config{}, func(ctx context.Context, s *store.Store, locks *leasehold.Client) error {
				return a.list(ctx, s, locks, f)
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&f.all, "all", "a", false, "list released records too")
	fl.BoolVar(&f.check, "check", false, "observe the records and show which holders are live or dead")
	checkForFlag(fl, &f.checkFor)
	fl.StringVar(&f.partition, "partition", "", "list only the partition `KEY`, with all its sort keys")
	fl.BoolVar(&f.watch, "watch", false, "keep the list up to date; in a pipe, write what changes")
	fl.Var(durationFlag{d: &f.every, min: 100 * time.Millisecond}, "every", "with --watch, list every `DURATION`")
	return cmd
}

func (a *app) list(ctx context.Context, s *store.Store, locks *leasehold.Client, f listFlags) error {
	out := a.newListing(s, locks)
	out.States, out.Checked = f.all, f.check
	f.bare = !out.JSON && !f.check
	records, damaged, err := a.records(ctx, locks, f)
	if err != nil {
		return cause(ctx, err)
	}
	o, err := s.Observer(locks)
	if err != nil {
		return err
	}
	o.Limit = f.checkFor
	if f.check {
		listed := s.Meter.Used() // so far that is the listing
		o.Reader.MayList(holders.Scope{Partition: f.partition, Prefix: f.prefix}, listed.Requests, listed.Reads)
	}
	if err := o.Reader.UnderSessions(ctx, records); err != nil {
		return cause(ctx, err)
	}
	rows := rowsOf(records)
	counted := permits.Among(ctx, s, records)
	for i := range rows {
		rows[i].Permit = counted[rows[i].Record.Key]
	}
	if f.check {
		to := out.Rows(a.Stdout, rows, a.Now())
		err = a.checkHolders(ctx, o, f.all, records, func(found holders.Observation) error {
			return to.Write(say.Record{Record: found.Record, Holder: found.State, Permit: counted[found.Record.Key]}, a.Now())
		})
		switch {
		case errors.Is(err, leasehold.ErrRecord): // it was reported
			damaged = true
		case err != nil:
			return err
		}
	} else if err := out.Write(a.Stdout, rows, a.Now()); err != nil {
		return err
	}
	if damaged {
		return failure.Exit(failure.CodeTrouble, nil)
	}
	if len(records) == 0 && out.Terminal {
		a.say.Text("no locks are held in %s", s.Name())
	}
	return nil
}

// newListing says how to write records to standard output.
func (a *app) newListing(s *store.Store, locks *leasehold.Client) say.Listing {
	terminal, caps := a.Stdout.Terminal && !a.flags.json, locks.Capabilities()
	return say.Listing{
		Table: s.Table, JSON: a.flags.json, Terminal: terminal,
		Columns:  a.Stdout.Columns(),
		SortKeys: caps.SortKey, Expiry: caps.Expiry,
	}
}

// records is listed with the damaged records reported on stderr.
func (a *app) records(ctx context.Context, locks *leasehold.Client, f listFlags) (found []leasehold.Record, damaged bool, err error) {
	found, bad, err := listed(ctx, locks, f)
	for _, err := range bad {
		a.say.Fail(err)
	}
	return found, len(bad) > 0, err
}

// listed reads the records to list, in order of key. The errors of damaged ones are
// apart: they do not end a listing.
func listed(ctx context.Context, locks *leasehold.Client, f listFlags) (found []leasehold.Record, damaged []error, err error) {
	var opts []leasehold.ListOption
	switch {
	case f.partition != "":
		opts = append(opts, leasehold.ListPartition(f.partition))
	case f.prefix != "":
		opts = append(opts, leasehold.ListPrefix(f.prefix))
	}
	for r, err := range locks.List(ctx, opts...) {
		switch {
		case errors.Is(err, leasehold.ErrRecord):
			damaged = append(damaged, err)
		case err != nil:
			return nil, damaged, err
		case f.all || !r.Released:
			if f.bare {
				r.Data, r.Attributes = nil, nil
			}
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(x, y leasehold.Record) int { return compareKeys(x.Key, y.Key) })
	return found, damaged, nil
}

func compareKeys(x, y leasehold.Key) int {
	return cmp.Or(cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Sort, y.Sort))
}

func rowsOf(records []leasehold.Record) []say.Record {
	rows := make([]say.Record, len(records))
	for i, r := range records {
		rows[i].Record = r
	}
	return rows
}

// checkHolders observes the records and calls settled with each as soon as its holder is
// known, or once it is clear that it will not be. Records that are no longer held are
// left out, unless all are wanted. A record that has been damaged meanwhile is
// reported on stderr, and its error returned in the end.
func (a *app) checkHolders(ctx context.Context, by holders.Observer, all bool, records []leasehold.Record, settled func(holders.Observation) error) error {
	held := 0
	for _, r := range records {
		if !r.Released {
			held++
		}
	}
	var bad, ended error
	err := a.say.Watch(ctx, by, records, wording.Count(held, "holder", "holders"), func(_ int, found holders.Observation) error {
		switch {
		case errors.Is(found.Err, leasehold.ErrRecord):
			a.say.Fail(found.Err)
			bad = found.Err
			return nil
		case found.Gone, found.Record.Released && !all:
			return nil
		case found.Err != nil:
			ended = found.Err // the others have it too
		}
		return settled(found)
	})
	return cmp.Or(err, ended, bad)
}

// cause returns the reason why ctx ended, or err if it has not ended.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
