package inspect

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/permits"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
)

type listFlags struct {
	holders.Listing
	check, watch    bool
	checkFor, every time.Duration
}

// List is leasehold ls.
func List(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
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
		ValidArgsFunction: c.HeldKey,
		Args:              arguments.OnePrefix,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.Prefix = args[0]
			}
			switch {
			case f.Prefix != "" && f.Partition != "":
				return misuse.Of(cmd, "PREFIX and --partition: use one of them")
			case f.watch && f.check:
				return misuse.Of(cmd, "--watch and --check: use one of them")
			case !f.check && cmd.Flags().Changed("for"):
				return misuse.Of(cmd, "--for is for --check: add --check, or leave out --for")
			case !f.watch && cmd.Flags().Changed("every"):
				return misuse.Of(cmd, "--every is for --watch: add --watch, or leave out --every")
			}
			if f.watch {
				return c.watchList(cmd, f)
			}
			return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
				return c.list(ctx, t, f)
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&f.Released, "all", "a", false, "list released records too")
	fl.BoolVar(&f.check, "check", false, "observe the records and show which holders are live or dead")
	arguments.CheckFor(fl, &f.checkFor)
	fl.StringVar(&f.Partition, "partition", "", "list only the partition `KEY`, with all its sort keys")
	fl.BoolVar(&f.watch, "watch", false, "keep the list up to date; in a pipe, write what changes")
	fl.Var(arguments.Duration{D: &f.every, Min: 100 * time.Millisecond}, "every", "with --watch, list every `DURATION`")
	return cmd
}

func (c *command) list(ctx context.Context, t *store.Table, f listFlags) error {
	out := c.Listing(t)
	out.States, out.Checked = f.Released, f.check
	f.Bare = !out.JSON && !f.check
	records, bad, err := holders.List(ctx, t.Locks, f.Listing)
	c.Say.Fail(bad...)
	if err != nil {
		return err
	}
	o := t.Observer(f.checkFor)
	if f.check {
		listed := t.Meter.Used() // so far that is the listing
		o.Reader.MayList(f.Scope, listed.Requests, listed.Reads)
	}
	if err := o.Reader.UnderSessions(ctx, records); err != nil {
		return err
	}
	rows := say.Records(records)
	counted := permits.Among(ctx, t, records)
	for i := range rows {
		rows[i].Permit = counted[rows[i].Record.Key]
	}
	if f.check {
		to := out.Rows(c.Stdout, rows, c.Now())
		err = c.Say.Check(ctx, o, f.Released, records, func(found holders.Observation) error {
			return to.Write(say.Record{Record: found.Record, Holder: found.State, Permit: counted[found.Record.Key]}, c.Now())
		})
		switch {
		case errors.Is(err, leasehold.ErrRecord): // it was reported
			bad = append(bad, err)
		case err != nil:
			return err
		}
	} else if err := out.Write(c.Stdout, rows, c.Now()); err != nil {
		return err
	}
	if len(bad) > 0 {
		return failure.Exit(failure.CodeTrouble, nil)
	}
	if len(records) == 0 && out.Terminal {
		if under := cmp.Or(f.Prefix, f.Partition); under != "" {
			c.Say.Text("no locks are held under %s in %s", wording.Name(under), t.Name())
		} else {
			c.Say.Text("no locks are held in %s", t.Name())
		}
	}
	return nil
}
