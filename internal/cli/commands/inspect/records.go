// Package inspect has the commands that show locks or check their store: ls, get, ui and
// doctor.
//
//	records.go    ls and get
//	ui.go         ui, which serves the web page of package ui
//	doctor.go     doctor, with the checks of package checks
package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Commands builds the cobra commands of this package. They share one Invocation, which is
// one run of leasehold.
type Commands struct{ *invocation.Invocation }

type listFlags struct {
	holders.Listing
	check arguments.Duration
}

// List returns the command "leasehold ls".
func (c *Commands) List() *cobra.Command {
	f := listFlags{}
	cmd := &cobra.Command{
		Use:               "ls [PREFIX] [flags]",
		Short:             "List locks and their holders",
		ValidArgsFunction: c.HeldKey,
		Args:              arguments.OnePrefix,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Prefix = strings.Join(args, "") // PREFIX, or "" if args is empty
			return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
				return c.list(ctx, t, f)
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&f.Released, "all", "a", false, "list released records too")
	arguments.Check(fl, &f.check)
	return cmd
}

func (c *Commands) list(ctx context.Context, t *store.Table, f listFlags) error {
	caps := t.Layout.Capabilities()
	out := say.Listing{
		JSON: c.JSON, Terminal: c.Stdout.Terminal && !c.JSON, Columns: c.Stdout.Columns(),
		SortKeys: caps.SortKey, Expiry: caps.Expiry, States: f.Released, Checked: f.check.Given,
	}
	f.Bare = !out.JSON && !f.check.Given
	records, bad, err := holders.List(ctx, t.Locks, f.Listing)
	c.Say.Fail(bad...)
	if err != nil {
		return err
	}
	if at := t.Region(); at != "" {
		c.Say.Note("answered by %s", at)
	}
	o := t.Observer(f.check.Duration)
	if f.check.Given {
		answered, reads := t.Used() // the listing has sent all requests so far: these figures are its cost
		o.Reader.MayList(f.Scope, answered, reads)
	}
	if err := o.Reader.UnderSessions(ctx, records); err != nil {
		return err
	}
	rows, region := make([]say.Record, len(records)), t.Region()
	for i, r := range records {
		rows[i] = say.Record{Table: t.Table, Region: region, Record: r}
	}
	if f.check.Given {
		to := out.Rows(c.Stdout, rows, c.Now())
		err = c.Say.Check(ctx, o, f.Released, records, func(found holders.Observation) error {
			return to.Write(say.Observed(t.Table, t.Region(), found), c.Now())
		})
		switch {
		case errors.As(err, new(*leasehold.RecordError)): // c.Say.Check has printed this error
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
	if len(records) == 0 && (out.Terminal || f.check.Given) { // in a pipe, the empty output is enough, except with --check
		if f.Prefix != "" {
			c.Say.Text("no locks are held under %s in %s", wording.Name(f.Prefix), t.Name())
		} else {
			c.Say.Text("no locks are held in %s", t.Name())
		}
	}
	return nil
}

type getFlags struct {
	data, held bool
	done       string // value of --done: label of the work to look for in the record
	check      arguments.Duration
	sortKey    string
}

// Get returns the command "leasehold get".
func (c *Commands) Get() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:               "get KEY [flags]",
		Short:             "Show one record",
		ValidArgsFunction: c.AnyKey,
		Args:              arguments.OneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.check.Given && f.data:
				return failure.MisuseOf(cmd, "--check and --data: use one of them")
			case f.done != "" && (f.check.Given || f.data || f.held):
				return failure.MisuseOf(cmd, "--done answers by its exit code alone: leave out the other flag")
			case f.held && f.data:
				return failure.MisuseOf(cmd, "--held and --data: use one of them")
			}
			return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
				key := t.Key(args[0], f.sortKey)
				switch {
				case f.data && !t.Layout.Capabilities().Data:
					return &leasehold.UnsupportedError{Layout: t.Layout.Name(), Feature: "data"}
				case f.held:
					return c.getHeld(ctx, t, key, f)
				case f.done != "":
					return answer(ctx, t, key, func(r leasehold.Record) (bool, error) { return r.Done != nil && isLabelOf(f.done, *r.Done), nil })
				}
				return c.getRecord(ctx, t, key, f)
			})
		},
	}
	fl := cmd.Flags()
	arguments.Check(fl, &f.check)
	fl.BoolVar(&f.data, "data", false, "print only the data, byte for byte, with --json too; at a terminal, escaped")
	fl.StringVar(&f.done, "done", "", "print nothing: exit code 0 if `LABEL` was done last, 1 if it was not")
	fl.BoolVar(&f.held, "held", false, "print nothing: exit code 0 if KEY is held, 1 if it is not")
	arguments.SortKey(fl, &f.sortKey)
	return cmd
}

func (c *Commands) getRecord(ctx context.Context, t *store.Table, key leasehold.Key, f getFlags) error {
	r, err := holders.Get(ctx, t.Locks, key)
	if err != nil {
		return err
	}
	if f.data {
		return c.Stdout.Data(r.Data)
	}
	one := []leasehold.Record{r}
	by := t.Observer(f.check.Duration)
	if err := by.Reader.UnderSessions(ctx, one); err != nil {
		return err
	}
	o := holders.Observation{Record: one[0]}
	if f.check.Given && !o.Record.Released {
		o = c.Say.Observe(ctx, by, o.Record, "the holder")
	}
	switch {
	case o.Err != nil && o.State != holders.Unknown:
		return o.Err
	case o.Gone:
		return t.NotFound(key)
	}
	return errors.Join(c.Stdout.Record(say.Observed(t.Table, t.Region(), o), c.JSON, c.Now()), o.Err) // even if the observation failed, print the record as last read
}

// answer reads the record of key and passes it to matches. It returns nil (exit code 0) if matches
// returns true. It returns an error with exit code 1 if matches returns false or the record does
// not exist. It returns any other error unchanged.
func answer(ctx context.Context, t *store.Table, key leasehold.Key, matches func(leasehold.Record) (bool, error)) error {
	r, err := holders.Get(ctx, t.Locks, key)
	switch {
	case errors.Is(err, leasehold.ErrNotFound):
	case err != nil:
		return err
	default:
		if yes, err := matches(r); yes || err != nil {
			return err
		}
	}
	return failure.Exit(failure.CodeNo, nil)
}

// isLabelOf reports whether label identifies the completed work. Work of --once is identified by
// its label. Work of --every is identified by the start of its period, as "get" or "get --json"
// prints it.
func isLabelOf(label string, work leasehold.Done) bool {
	if work.Once != "" {
		return label == work.Once
	}
	at, err := time.Parse(time.RFC3339, label)
	return label == visible.Period(work.Period) || err == nil && at.Equal(work.Period)
}

// getHeld reports, only by the exit code, whether key is held. With --check, the exit code
// is 0 only if the key's holder is also live. getHeld prints nothing but errors.
func (c *Commands) getHeld(ctx context.Context, t *store.Table, key leasehold.Key, f getFlags) error {
	return answer(ctx, t, key, func(r leasehold.Record) (bool, error) {
		if r.Released || !f.check.Given {
			return !r.Released, nil
		}
		what := "" // text for the countdown that Observe shows on a terminal; with "", Observe shows none
		if c.Say.Rewrites() {
			what = "the holder"
		}
		o := c.Say.Observe(ctx, t.Observer(f.check.Duration), r, what)
		if o.Err == nil && o.State == holders.Unknown {
			o.Err = fmt.Errorf("whether the holder of %s is live is not known after %s: observe for longer, as with --check=5m", key.String(), wording.Duration(f.check.Duration))
		}
		return o.State == holders.Live, o.Err
	})
}
