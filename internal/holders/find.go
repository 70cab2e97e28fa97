package holders

import (
	"context"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// GrantOf returns a string that is the same for all records of one grant, and different for the
// next grant of the key. See liveness.GrantOf.
func GrantOf(r leasehold.Record) string {
	return liveness.GrantOf(protocol.Record{Grant: r.Grant, Owner: r.Owner, Version: r.Version, Lease: r.Lease})
}

// Get reads the record of a key of the lock table.
func Get(ctx context.Context, locks *leasehold.Client, key leasehold.Key) (leasehold.Record, error) {
	return locks.Get(ctx, key.Partition, leasehold.WithSortKey(key.Sort))
}
