package leasehold

import "context"

// EndLeaseAlone ends the lease of a lock, which is the first half of ending the lock.
func EndLeaseAlone(l *Lock, cause error) { l.h.Lock().Lease().End(cause) }

// Ended returns how the grant has ended, whatever its handles report.
func Ended(l *Lock) error { return l.h.Lock().Ended() }

// ShareGrant is the second half of an Acquire with Reentrant. The first half has found the
// grant still held.
func ShareGrant(ctx context.Context, l *Lock) (*Lock, error) {
	return l.c.share(ctx, l.h.Lock(), &request{})
}
