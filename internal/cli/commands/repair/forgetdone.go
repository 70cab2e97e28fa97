package repair

import (
	"context"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
)

// forgetDone removes what the record of a key says was done last, whoever holds it.
func (c *command) forgetDone(ctx context.Context, t *store.Table, key leasehold.Key, yes bool) error {
	r, err := holders.Get(ctx, t.Locks, key)
	name := wording.Key(key)
	switch {
	case err != nil:
		return err
	case r.Done == nil:
		return failure.Exit(failure.CodeNo, misuse.Errorf("the record of %s does not say that anything was done: nothing to forget", name))
	case !yes:
		_ = c.Stderr.Prose("%s: %s.", name, r.Done.String())
		if err := c.Confirm(ctx, "Forget that, so that it is done again? [y/N] ", "nothing was removed"); err != nil {
			return err
		}
	}
	if err := t.Locks.ForgetDone(ctx, r); err != nil {
		return err
	}
	return c.Print(Undone{t.Table, key.Partition, key.Sort, r.Done}, "forgot that for %s %s\n", name, r.Done)
}

// Undone is what forget --done --json prints.
type Undone struct {
	Table   string          `json:"table"`
	Key     string          `json:"key"`
	SortKey string          `json:"sortKey,omitempty"`
	Done    *leasehold.Done `json:"done"`
}
