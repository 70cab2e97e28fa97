package repair

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
)

// Forget returns the command "leasehold forget".
func (c *Commands) Forget() *cobra.Command {
	var yes, done bool
	var sortKey string
	cmd := &cobra.Command{
		Use:               "forget KEY [flags]",
		Short:             "Remove the record of a free key",
		ValidArgsFunction: c.AnyKey,
		Args:              arguments.OneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes && !c.CanAsk() {
				return failure.MisuseOf(cmd, "forget asks at a terminal, and there is none: use --yes")
			}
			return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
				key := t.Key(args[0], sortKey)
				if done {
					return c.forgetDone(ctx, t, key, yes)
				}
				return c.forget(ctx, t, key, yes)
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&yes, "yes", "y", false, "do not ask")
	fl.BoolVar(&done, "done", false, "remove only the mark of the last work under KEY")
	arguments.SortKey(fl, &sortKey)
	return cmd
}

// Forgotten is the JSON object that "forget --json" prints.
type Forgotten struct {
	Table   string `json:"table"`
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
}

func (c *Commands) forget(ctx context.Context, t *store.Table, key leasehold.Key, yes bool) error {
	item, free, err := readFree(ctx, t, key)
	if err != nil {
		return err
	}
	name := key.String()
	if len(free.Data) > 0 || len(free.Attributes) > 0 {
		c.Say.Note("%s has data or attributes of yours, which are removed as well", name)
	}
	if free.Done != nil {
		c.Say.Note("%s: %s: that is forgotten as well, and the next run does it again", name, (*leasehold.Done)(free.Done))
	}
	if !yes {
		_ = c.Stderr.Prose("%s is free. Tokens start again from the clock: above all earlier ones, unless clocks differ by more than the time since the last grant.", name)
		if err := c.Confirm(ctx, fmt.Sprintf("Forget %s, if nothing has changed? [y/N] ", name), "nothing was removed"); err != nil {
			return err
		}
	}
	if err := removeExactly(ctx, t, key, item); err != nil {
		return err
	}
	return c.Print(Forgotten{t.Table, key.Partition, key.Sort}, "forgot %s\n", name)
}

// readFree reads the record of a free key. It returns an error if the key is held or its
// record is damaged.
func readFree(ctx context.Context, t *store.Table, key leasehold.Key) (item protocol.Item, free protocol.Record, err error) {
	if protocol.IsSessionKey(t.Proto, key) {
		return nil, free, failure.Exit(failure.CodeNo, fmt.Errorf("%s is the row of a shared lease rather than a key: nothing was removed", key.String()))
	}
	if item, err = t.Item(ctx, key); err != nil {
		return nil, free, err
	}
	if found := holders.Read(t.Proto, item); found.Record.Released {
		return item, found.Record, nil
	}
	r, err := holders.Get(ctx, t.Locks, key)
	switch {
	case errors.As(err, new(*leasehold.RecordError)):
		return nil, free, failure.Exit(failure.CodeNo, err)
	case errors.Is(err, leasehold.ErrNotFound), err == nil && r.Released:
		return nil, free, changed(key)
	case err != nil:
		return nil, free, err
	}
	return nil, free, failure.Exit(failure.CodeNo, fmt.Errorf("%w: nothing was removed: forget %s once it is free",
		&leasehold.HeldError{Table: t.Table, Key: key, Holder: r}, key.String()))
}

// removeExactly deletes item from the table, but only if no attribute has changed since
// item was read.
func removeExactly(ctx context.Context, t *store.Table, key leasehold.Key, item protocol.Item) error {
	unsure := false // true if an attempt had no answer, so it may have deleted the item
	err := attempts.Patiently(ctx, func(ctx context.Context) error {
		_, err := t.Requests().DeleteItem(ctx, records.DeleteExactly(t.Proto, item).DeleteItem(t.Table), attempts.Once)
		unsure = unsure || decide.Classify(err).Effect == decide.Unknown
		return err
	})
	var refused *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &refused) && len(refused.Item) == 0 && unsure:
		return nil // an earlier attempt, whose reply was lost, deleted the item
	case errors.As(err, &refused) && len(refused.Item) == 0:
		return t.NotFound(key)
	case errors.As(err, &refused) && unsure: // an earlier attempt may have deleted the item before another client wrote a new one
		return fmt.Errorf("%w: %w meanwhile: %s: check with leasehold get %s", leasehold.ErrUnknownOutcome, leasehold.ErrChanged, key.String(), wording.ShellKey(key))
	case errors.As(err, &refused):
		return changed(key)
	}
	return err
}

func changed(key leasehold.Key) error {
	return fmt.Errorf("%w meanwhile: %s: nothing was removed: check with leasehold get %s", leasehold.ErrChanged, key.String(), wording.ShellKey(key))
}

// forgetDone removes the mark of the last completed work (--once or --every) from the
// record of key. The key may be free or held.
func (c *Commands) forgetDone(ctx context.Context, t *store.Table, key leasehold.Key, yes bool) error {
	r, err := holders.Get(ctx, t.Locks, key)
	name := key.String()
	switch {
	case err != nil:
		return err
	case r.Done == nil:
		return failure.Like(leasehold.ErrNotFound, fmt.Sprintf("the record of %s contains no mark of work: nothing to forget", name))
	case !yes:
		_ = c.Stderr.Prose("%s: %s.", name, r.Done.String())
		if err := c.Confirm(ctx, "Forget that, so that it is done again? [y/N] ", "nothing was removed"); err != nil {
			return err
		}
	}
	if err := t.Locks.ForgetDone(ctx, r); err != nil {
		return err
	}
	return c.Print(Undone{&Forgotten{t.Table, key.Partition, key.Sort}, r.Done}, "forgot that for %s %s\n", name, r.Done)
}

// Undone is the JSON object that "forget --done --json" prints.
type Undone struct {
	*Forgotten
	Done *leasehold.Done `json:"done"`
}
