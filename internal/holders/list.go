package holders

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Listing selects the records that List returns.
type Listing struct {
	Scope
	Released bool // also returns records of free keys
	Bare     bool // omits attributes, and data that is long or not text: these may take 400 KB for each record
}

// IsDamaged reports whether err is about a single record that cannot be decoded. A listing can
// continue after it. IsDamaged returns false if the item lacks the layout's key: then the table and
// the layout have different key schemas.
func IsDamaged(err error) bool {
	var bad *leasehold.RecordError
	return errors.As(err, &bad) && bad.Key != (leasehold.Key{})
}

// List returns records sorted by key. It leaves out records that cannot be decoded, and returns
// their errors in the result "damaged".
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
