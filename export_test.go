package leasehold

// EndLeaseAlone is the first half of what ends a lock.
func EndLeaseAlone(l *Lock, cause error) { l.h.Lock().Lease().End(cause) }
