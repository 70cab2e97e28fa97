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
				return c.rewrite(ctx, t, rewriting, strings.Join(args, ""), yes) // PREFIX, or "" if args is empty
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// toRewrite is a record that must be rewritten, because a lock library cannot read it although the
// table has the layout of that library. For example, the record was written in another layout.
// "table rewrite --json" prints toRewrite as a JSON object.
type toRewrite struct {
	Table   string `json:"table"`
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
	Result  string `json:"result"`
	What    string `json:"what"`            // why that lock library cannot read the record
	Owner   string `json:"owner,omitempty"` // owner of the lock if it is held; otherwise ""

	bad error // error if the item is not a lock record at all; otherwise nil
}

// key returns the key of the record.
func (r *toRewrite) key() leasehold.Key { return leasehold.Key{Partition: r.Key, Sort: r.SortKey} }

// Values of toRewrite.Result, as printed.
const (
	resultDue       = "due"
	resultRewritten = "rewritten"
	resultHeld      = "held"
	resultBad       = "bad"
	resultGone      = "" // another process has deleted the record; nothing is printed for it
)

func (c *Commands) rewrite(ctx context.Context, t *store.Table, proto protocol.Rewriting, prefix string, yes bool) error {
	all, err := recordsToRewrite(ctx, t, proto, prefix)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		c.Say.Text("nothing to rewrite in %s: %s reads every record of %s", t.Table, t.Layout.Name(), wording.Name(prefix+"*"))
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
		if r.Result == resultDue {
			if err := r.rewrite(ctx, t.Locks); err != nil {
				c.Say.Note("rewrote %d of %s: run it again for the others", done, wording.Count(len(all), "record", "records"))
				return err
			}
		}
		switch r.Result {
		case resultRewritten:
			done++
		case resultGone:
			continue
		default:
			left++
		}
		if err := c.sayRewrite(r); err != nil {
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

// confirmRewrite prints the records that need rewriting, and asks the user whether to
// rewrite them. If it cannot ask because there is no terminal, it returns an error with the
// given exit code.
func (c *Commands) confirmRewrite(ctx context.Context, t *store.Table, all []toRewrite, code int) error {
	due := 0
	for _, r := range all {
		if r.Result == resultDue {
			due++
		}
		if err := c.sayRewrite(r); err != nil {
			return err
		}
	}
	if !c.CanAsk() {
		return failure.Exit(code, failure.Misusef("nothing was rewritten: rewrite asks at a terminal, and there is none: use --yes"))
	}
	return c.Confirm(ctx, fmt.Sprintf("Acquire and release the %s due, in layout %s? [y/N] ", wording.Count(due, "record that is", "records that are"), t.Layout.Name()), "nothing was rewritten")
}

// rewrite acquires and releases the key of r. These two calls write the record again, in the
// table's layout. The user's data and attributes stay unchanged.
func (r *toRewrite) rewrite(ctx context.Context, locks *leasehold.Client) error {
	lock, err := locks.TryAcquire(ctx, r.Key, leasehold.WithSortKey(r.SortKey), leasehold.IfExists(), leasehold.WithoutRenewal(),
		leasehold.NoWaitEvenIfDead()) // never take over a held lock, even if its holder appears dead
	var held *leasehold.HeldError
	switch {
	case errors.As(err, &held):
		r.Result, r.Owner = resultHeld, held.Holder.Owner
		return nil
	case errors.Is(err, leasehold.ErrNotFound):
		r.Result = resultGone
		return nil
	case err != nil:
		return err
	}
	r.Result = resultRewritten
	// A signal cancels ctx, but must not stop the release.
	return lock.Release(context.WithoutCancel(ctx), leasehold.DeleteOnRelease(false))
}

// recordsToRewrite returns the records that need rewriting, sorted by key.
func recordsToRewrite(ctx context.Context, t *store.Table, proto protocol.Rewriting, prefix string) ([]toRewrite, error) {
	reader := holders.NewReader(t.Requests(), t.Table, proto)
	var all []toRewrite
	for item, err := range reader.Items(ctx, holders.Scope{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		key := proto.Schema().KeyOf(item)
		if key == (protocol.Key{}) { // the item does not have the key attributes of the layout, so the flags name the wrong layout
			_, err := proto.Decode(item)
			return nil, reader.AsRecordError(key, item, err)
		}
		what := proto.Foreign(item)
		if what == "" {
			continue
		}
		found := toRewrite{Table: t.Table, Key: key.Partition, SortKey: key.Sort, Result: resultDue, What: what}
		switch r, err := proto.Decode(item); {
		case err != nil:
			found.Result, found.bad = resultBad, reader.AsRecordError(key, item, err)
		case !r.Released:
			found.Result, found.Owner = resultHeld, r.Owner
		}
		all = append(all, found)
	}
	slices.SortFunc(all, func(x, y toRewrite) int { return x.key().Compare(y.key()) })
	return all, nil
}

// sayRewrite prints one line that contains the result for the record r.
func (c *Commands) sayRewrite(r toRewrite) error {
	cells := []string{r.Result, visible.Name(r.key().String()), visible.Name(r.What)}
	if r.Owner != "" {
		cells = append(cells, "by "+wording.Owner(r.Owner))
	}
	return c.Print(r, "%s\n", say.Tabbed(cells...))
}
