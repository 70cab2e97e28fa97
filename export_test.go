package leasehold

import "context"

// EndLeaseAlone does only the first step of ending a lock: it ends the lease. The contexts
// of the handles have not ended yet.
func EndLeaseAlone(l *Lock, cause error) { l.h.Lock().Lease().End(cause) }

// Ended returns the error with which the grant has ended. The handles of the grant may
// return another error.
func Ended(l *Lock) error { return l.h.Lock().Ended() }

// ShareGrant returns another handle of the grant. Acquire with Reentrant does the same once
// it has found that the grant is still held.
func ShareGrant(ctx context.Context, l *Lock) (*Lock, error) {
	return l.c.share(ctx, l.h.Lock(), &request{})
}
