package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
)

// watchEvery is the pause between two listings of ls --watch. Each listing reads
// the whole table.
const watchEvery = 2 * time.Second

type listFlags struct {
	all, check, watch bool
	partition, prefix string
}

// onePrefix accepts at most one argument, the PREFIX.
func onePrefix(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageOf(cmd, "only one PREFIX is allowed: remove %s", printable(args[1]))
	}
	return nil
}

func (a *app) newList() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "ls [PREFIX] [flags]",
		Short: "List who holds what",
		Long: `List held locks whose key begins with PREFIX.

Reads the whole table, unless --partition is given. A record alone does not
show whether its holder is alive: --check observes each record for one lease.`,
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
			}
			s, err := a.open(cmd, "")
			if err != nil {
				return err
			}
			defer s.close()
			return s.withLocks(cmd.Context(), func(ctx context.Context, locks *leasehold.Client) error {
				return a.list(ctx, s, locks, f)
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&f.all, "all", "a", false, "list released records too")
	fl.BoolVar(&f.check, "check", false, "observe the records and show which holders are live or dead")
	fl.StringVar(&f.partition, "partition", "", "list only the partition `KEY`, with all its sort keys")
	fl.BoolVar(&f.watch, "watch", false, "keep the list up to date")
	return cmd
}

func (a *app) list(ctx context.Context, s *store, locks *leasehold.Client, f listFlags) error {
	out := a.newListing(s, locks)
	out.states, out.checked = f.all, f.check
	if f.watch {
		return answer(a.watchList(ctx, locks, f, out))
	}
	records, damaged, err := a.records(ctx, locks, f)
	if err != nil {
		return answer(cause(ctx, err))
	}
	rows := make([]row, len(records))
	for i, r := range records {
		rows[i].record = r
	}
	if f.check {
		o, err := newObserver(s, locks)
		if err != nil {
			return err
		}
		if rows, err = a.checkRows(ctx, o, f, records); err != nil {
			return answer(err)
		}
	}
	if err := out.write(a.Stdout, rows, a.Now()); err != nil {
		return err
	}
	if damaged {
		return exit(codeTrouble, nil)
	}
	if len(rows) == 0 && out.terminal && !out.json {
		a.say.text("no locks are held in %s", s.table)
	}
	return nil
}

// newListing says how to write records to standard output.
func (a *app) newListing(s *store, locks *leasehold.Client) listing {
	terminal, caps := isTerminal(a.Stdout), locks.Capabilities()
	return listing{
		table: s.table, json: a.flags.json, terminal: terminal, colour: terminal && a.get("NO_COLOR") == "",
		sortKeys: caps.SortKey, expiry: caps.Expiry,
	}
}

// records reads the records to list, in order of key. A damaged record is
// reported on stderr.
func (a *app) records(ctx context.Context, locks *leasehold.Client, f listFlags) (found []leasehold.Record, damaged bool, err error) {
	var opts []leasehold.ListOption
	switch {
	case f.partition != "":
		opts = append(opts, leasehold.ListPartition(f.partition))
	case f.prefix != "":
		opts = append(opts, leasehold.ListPrefix(f.prefix))
	}
	for r, err := range locks.List(ctx, opts...) {
		switch {
		case errors.Is(err, leasehold.ErrBadRecord):
			a.say.fail(err)
			damaged = true
		case err != nil:
			return nil, damaged, err
		case f.all || !r.Released:
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(x, y leasehold.Record) int {
		return cmp.Or(cmp.Compare(x.Key.Partition, y.Key.Partition), cmp.Compare(x.Key.Sort, y.Key.Sort))
	})
	return found, damaged, nil
}

// checkRows observes the records and returns them with the liveness of their
// holders.
func (a *app) checkRows(ctx context.Context, by observer, f listFlags, records []leasehold.Record) ([]row, error) {
	held := 0
	for _, r := range records {
		if !r.Released {
			held++
		}
	}
	what := fmt.Sprintf("%d holders", held)
	if held == 1 {
		what = "1 holder"
	}
	var rows []row
	for _, o := range a.observeWithProgress(ctx, by, records, what) {
		switch {
		case o.err != nil && ctx.Err() == nil && errors.Is(o.err, leasehold.ErrBadRecord):
			a.say.fail(o.err)
		case o.err != nil:
			return nil, o.err
		case o.gone, o.record.Released && !f.all:
		default:
			rows = append(rows, row{o.record, o.liveness})
		}
	}
	return rows, nil
}

// watchList lists again and again until a signal ends it. On a terminal it
// repaints the list; elsewhere it writes only the records that have changed.
func (a *app) watchList(ctx context.Context, locks *leasehold.Client, f listFlags, out listing) error {
	f.all = f.all || !out.terminal || out.json // a release is a change too
	out.states = f.all
	before := map[leasehold.Key]string{}
	for {
		records, _, err := a.records(ctx, locks, f)
		if err != nil {
			return cause(ctx, err)
		}
		var rows []row
		for _, r := range records {
			now := grantOf(r) + state(r)
			if out.terminal && !out.json || before[r.Key] != now {
				rows = append(rows, row{record: r})
			}
			before[r.Key] = now
		}
		if out.terminal && !out.json {
			err = a.repaint(out, rows)
		} else {
			err = out.write(a.Stdout, rows, a.Now())
		}
		if err != nil {
			return err
		}
		if !sleep(ctx, watchEvery) {
			return context.Cause(ctx)
		}
	}
}

// repaint clears the screen and writes the list.
func (a *app) repaint(out listing, rows []row) error {
	const home, clear = "\x1b[H", "\x1b[2J"
	var b bytes.Buffer
	b.WriteString(home + clear)
	if len(rows) == 0 {
		fmt.Fprintf(&b, "no locks are held in %s\n", out.table)
	}
	if err := out.write(&b, rows, a.Now()); err != nil {
		return err
	}
	_, err := io.Copy(a.Stdout, &b)
	return err
}

// cause returns the reason why ctx ended, or err if it has not ended.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
