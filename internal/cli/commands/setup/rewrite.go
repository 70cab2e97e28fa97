package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

func (c *Commands) newTableRewrite() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "rewrite [PREFIX] [flags]",
		Short: "Rewrite released records of another layout for --layout",
		Args:  arguments.OnePrefix,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
				rewriting, ok := t.Proto.(protocol.Rewriting)
				if !ok {
					return failure.MisuseOf(cmd, "layout %s can read every record in its table: there is nothing to rewrite", t.Layout.Name())
				}
				return c.rewrite(ctx, t, rewriting, strings.Join(args, ""), yes) // args has at most one PREFIX
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// toRewrite is a record that the library of the table's layout cannot read.
type toRewrite struct {
	key    leasehold.Key
	what   string // why the library cannot read the record
	result string
	owner  string // the holder of the lock
	bad    error  // why the item is not a lock record; nil if it is one
}

// Results for a record, as printed.
const (
	resultDue       = "due"
	resultRewritten = "rewritten"
	resultHeld      = "held"
	resultBad       = "bad"
	resultGone      = "" // the record was deleted
)

func (c *Commands) rewrite(ctx context.Context, t *store.Table, proto protocol.Rewriting, prefix string, yes bool) error {
	all, err := recordsToRewrite(ctx, t, proto, prefix)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		c.Say.Text("nothing to rewrite in %s: %s reads every record", t.Table, t.Layout.Name())
		return nil
	}
	code := failure.CodeNo
	for _, r := range all {
		if r.bad != nil {
			c.Say.Fail(r.bad)
			code = failure.CodeTrouble
		}
	}
	if !yes {
		if err := c.confirmRewrite(ctx, t, all, code); err != nil {
			return err
		}
	}
	done, left := 0, 0
	for _, r := range all {
		if r.result == resultDue {
			if err := r.rewrite(ctx, t.Locks); err != nil {
				c.Say.Note("rewrote %d of %s: run it again for the others", done, wording.Count(len(all), "record", "records"))
				return err
			}
		}
		switch r.result {
		case resultRewritten:
			done++
		case resultGone:
			continue
		default:
			left++
		}
		if err := c.sayRewrite(t, r); err != nil {
			return err
		}
	}
	switch {
	case code == failure.CodeTrouble:
		return failure.Exit(code, nil)
	case left > 0:
		return failure.Exit(code, fmt.Errorf("rewrote %d of %s, the others are held: run it again once they are released or broken", done, wording.Count(done+left, "record", "records")))
	}
	c.Say.Text("rewrote %s of %s", wording.Count(done, "record", "records"), t.Name())
	return nil
}

// confirmRewrite shows the records that need rewriting, and asks. Without a terminal to ask
// at, it returns an error that ends the command with the given code.
func (c *Commands) confirmRewrite(ctx context.Context, t *store.Table, all []toRewrite, code int) error {
	due := 0
	for _, r := range all {
		if r.result == resultDue {
			due++
		}
		if err := c.sayRewrite(t, r); err != nil {
			return err
		}
	}
	if !c.CanAsk() {
		return failure.Exit(code, failure.Misusef("nothing was rewritten: rewrite asks at a terminal, and there is none: use --yes"))
	}
	return c.Confirm(ctx, fmt.Sprintf("Acquire and release the %s due, in layout %s? [y/N] ", wording.Count(due, "record that is", "records that are"), t.Layout.Name()), "nothing was rewritten")
}

// rewrite acquires and releases the key. These two calls write the whole record again,
// except the user's data and attributes.
func (r *toRewrite) rewrite(ctx context.Context, locks *leasehold.Client) error {
	lock, err := locks.TryAcquire(ctx, r.key.Partition, leasehold.WithSortKey(r.key.Sort), leasehold.IfExists(), leasehold.WithoutRenewal(),
		leasehold.NoWaitEvenIfDead()) // a held record is left unchanged
	var held *leasehold.HeldError
	switch {
	case errors.As(err, &held):
		r.result, r.owner = resultHeld, held.Holder.Owner
		return nil
	case errors.Is(err, leasehold.ErrNotFound):
		r.result = resultGone
		return nil
	case err != nil:
		return err
	}
	r.result = resultRewritten
	// The context without cancellation lets the release continue after a signal.
	return lock.Release(context.WithoutCancel(ctx), leasehold.DeleteOnRelease(false))
}

// recordsToRewrite reads the records that need rewriting, in order of key.
func recordsToRewrite(ctx context.Context, t *store.Table, proto protocol.Rewriting, prefix string) ([]toRewrite, error) {
	reader := holders.NewReader(t.Requests(), t.Table, proto)
	var all []toRewrite
	for item, err := range reader.Items(ctx, holders.Scope{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		key := proto.Schema().KeyOf(item)
		if key == (protocol.Key{}) { // the table has another layout, so it is unknown which of its records need rewriting
			_, err := proto.Decode(item)
			return nil, reader.AsRecordError(key, item, err)
		}
		what := proto.Foreign(item)
		if what == "" {
			continue
		}
		found := toRewrite{key: key, what: what, result: resultDue}
		switch r, err := proto.Decode(item); {
		case err != nil:
			found.result, found.bad = resultBad, reader.AsRecordError(key, item, err)
		case !r.Released:
			found.result, found.owner = resultHeld, r.Owner
		}
		all = append(all, found)
	}
	slices.SortFunc(all, func(x, y toRewrite) int { return x.key.Compare(y.key) })
	return all, nil
}

// sayRewrite writes one line with the result for a record.
func (c *Commands) sayRewrite(t *store.Table, r toRewrite) error {
	cells := []string{r.result, visible.Name(r.key.String()), visible.Name(r.what)}
	if r.owner != "" {
		cells = append(cells, "by "+wording.Owner(r.owner))
	}
	return c.Print(struct {
		Table   string `json:"table"`
		Key     string `json:"key"`
		SortKey string `json:"sortKey,omitempty"`
		Result  string `json:"result"`
		What    string `json:"what"`
		Owner   string `json:"owner,omitempty"`
	}{t.Table, r.key.Partition, r.key.Sort, r.result, r.what, r.owner}, "%s\n", say.Tabbed(cells...))
}
