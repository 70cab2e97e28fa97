package holders

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Listing selects the records that List reads.
type Listing struct {
	Scope
	Released bool // includes records of free keys
	Bare     bool // omits attributes, and data that is long or not text: they may take 400 KB for each record
}

// IsDamaged reports whether err concerns one damaged record, so that a listing can continue
// after it. It returns false for an item without a key: then the table has another key
// schema, and every item lacks the key.
func IsDamaged(err error) bool {
	var bad *leasehold.RecordError
	return errors.As(err, &bad) && bad.Key != (leasehold.Key{})
}

// List reads records, sorted by key. It returns the errors of damaged records separately.
func List(ctx context.Context, locks *leasehold.Client, l Listing) (found []leasehold.Record, damaged []error, err error) {
	for r, err := range locks.List(ctx, leasehold.ListOptions{Prefix: l.Prefix}) {
		switch {
		case IsDamaged(err):
			damaged = append(damaged, err)
		case err != nil:
			return nil, damaged, err
		case l.Released || !r.Released:
			if l.Bare {
				r.Data, r.Attributes = []byte(visible.Remark(r.Data)), nil
			}
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(x, y leasehold.Record) int { return x.Key.Compare(y.Key) })
	return found, damaged, nil
}
