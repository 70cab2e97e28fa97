package leasehold

import "context"

// EndLeaseAlone does the first step of ending a lock: it ends the lease, but not yet the
// contexts of the handles.
func EndLeaseAlone(l *Lock, cause error) { l.h.Lock().Lease().End(cause) }

// Ended returns how the grant has ended, whatever its handles report.
func Ended(l *Lock) error { return l.h.Lock().Ended() }

// ShareGrant does what an Acquire with Reentrant does after it has found the grant still
// held.
func ShareGrant(ctx context.Context, l *Lock) (*Lock, error) {
	return l.c.share(ctx, l.h.Lock(), &request{})
}
