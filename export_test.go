package leasehold

import "context"

// EndLeaseAlone does the first step of ending a lock: it ends the lease, but not yet the
// contexts of the handles.
func EndLeaseAlone(l *Lock, cause error) { l.h.Lock().Lease().End(cause) }

// Ended returns the error with which the grant has ended, even if its handles report
// another error.
func Ended(l *Lock) error { return l.h.Lock().Ended() }

// ShareGrant shares the grant, as an Acquire with Reentrant does once it has found that the
// grant is still held.
func ShareGrant(ctx context.Context, l *Lock) (*Lock, error) {
	return l.c.share(ctx, l.h.Lock(), &request{})
}
