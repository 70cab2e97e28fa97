package inspect

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
)

type listFlags struct {
	holders.Listing
	check arguments.Duration
}

// List returns leasehold ls.
func (c *Commands) List() *cobra.Command {
	f := listFlags{}
	cmd := &cobra.Command{
		Use:               "ls [PREFIX] [flags]",
		Short:             "List locks and their holders",
		ValidArgsFunction: c.HeldKey,
		Args:              arguments.OnePrefix,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Prefix = strings.Join(args, "") // args has at most one PREFIX
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
		answered, reads := t.Used() // the listing has sent all requests so far
		o.Reader.MayList(f.Scope, answered, reads)
	}
	if err := o.Reader.UnderSessions(ctx, records); err != nil {
		return err
	}
	rows := say.Records(t.Table, t.Region(), records)
	if f.check.Given {
		to := out.Rows(c.Stdout, rows, c.Now())
		err = c.Say.Check(ctx, o, f.Released, records, func(found holders.Observation) error {
			return to.Write(say.Observed(t.Table, t.Region(), found), c.Now())
		})
		switch {
		case errors.As(err, new(*leasehold.RecordError)): // the error was reported already
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
	if len(records) == 0 && (out.Terminal || f.check.Given) { // --check asks a question, so ls answers it even in a pipe
		if f.Prefix != "" {
			c.Say.Text("no locks are held under %s in %s", wording.Name(f.Prefix), t.Name())
		} else {
			c.Say.Text("no locks are held in %s", t.Name())
		}
	}
	return nil
}
