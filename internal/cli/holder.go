package cli

import (
	"context"
	"errors"

	"github.com/leasehold-go/leasehold"
)

// holder reads the record of a key. A read/write lock has one for each holder:
// it returns the first that is wanted, or any if none is.
func holder(ctx context.Context, locks *leasehold.Client, key leasehold.Key, wanted func(leasehold.Record) bool) (leasehold.Record, error) {
	r, err := locks.Get(ctx, key.Partition, withSortKey(key)...)
	if err != nil || wanted(r) {
		return r, err
	}
	for other, err := range locks.List(ctx, leasehold.ListPartition(key.Partition)) {
		var bad *leasehold.RecordError
		switch {
		case errors.As(err, &bad):
			continue
		case err != nil:
			return r, err
		case other.Key == r.Key && wanted(other):
			return other, nil
		}
	}
	return r, nil
}
