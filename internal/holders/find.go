package holders

import (
	"context"
	"errors"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// GrantOf tells one grant of a key from the next: see liveness.GrantOf.
func GrantOf(r leasehold.Record) string {
	return liveness.GrantOf(protocol.Record{Grant: r.Grant, Owner: r.Owner, Version: r.Version, Lease: r.Lease})
}

// Get reads the record of a key: of one that has several holders, that of one.
func Get(ctx context.Context, locks *leasehold.Client, key leasehold.Key) (leasehold.Record, error) {
	return locks.Get(ctx, key.Partition, leasehold.WithSortKey(key.Sort))
}

// Find reads the record of a key. A read/write lock has one for each holder: it returns
// the first that is wanted, or any if none is.
func Find(ctx context.Context, locks *leasehold.Client, key leasehold.Key, wanted func(leasehold.Record) bool) (leasehold.Record, error) {
	r, err := Get(ctx, locks, key)
	if err != nil || wanted(r) {
		return r, err
	}
	others, err := Others(ctx, locks, r)
	for _, other := range others {
		if wanted(other) {
			return other, nil
		}
	}
	return r, err
}

// Others reads the other holders of the key of r: a read/write lock may have some.
// Records that cannot be read are left out.
func Others(ctx context.Context, locks *leasehold.Client, r leasehold.Record) ([]leasehold.Record, error) {
	var found []leasehold.Record
	for other, err := range locks.List(ctx, leasehold.ListPartition(r.Key.Partition)) {
		switch {
		case errors.Is(err, leasehold.ErrRecord):
		case err != nil:
			return found, err
		case other.Key == r.Key && !other.Released && GrantOf(other) != GrantOf(r):
			found = append(found, other)
		}
	}
	return found, nil
}
