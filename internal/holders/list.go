package holders

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Listing is which records List reads.
type Listing struct {
	Scope
	Released bool // includes records of free keys
	Bare     bool // without attributes, and data but a remark: a record may have 400 KB of them
}

// IsDamaged reports whether err is about one damaged record, which ends no listing. The
// error of an item without a key does end it: the table has another key schema, and so has
// every item.
func IsDamaged(err error) bool {
	var bad *leasehold.RecordError
	return errors.As(err, &bad) && bad.Key != (leasehold.Key{})
}

// List reads records, in order of key. The errors of damaged ones are apart.
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
