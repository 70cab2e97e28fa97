package layout

import "time"

// DyndbMutex is the layout of dyndb-mutex 0.x. Processes of that library may share the
// table. Caution: dyndb-mutex treats every error of DynamoDB as an acquired lock. While a
// dyndb-mutex client gets errors, for example throttling, it works as if it held every lock.
// Grants and releases of dyndb-mutex write whole items, and so erase leasehold's token.
//
// A dyndb-mutex client never renews, and decides by its own wall clock when a lock has expired.
// Therefore a leasehold client stops trusting its lock at expiry − MaxSkew − Config.Margin. It
// takes over the key of a dead holder at expiry + MaxSkew + one millisecond.
type DyndbMutex struct {
	MaxSkew time.Duration // greatest difference between the clocks of two machines that use the table; default 2 s
}

// Name returns "dyndb-mutex".
func (DyndbMutex) Name() string { return "dyndb-mutex" }

// Capabilities returns the features that this layout supports. Records have neither data nor
// attributes. A release may keep or delete the record.
func (DyndbMutex) Capabilities() Capabilities {
	return Capabilities{
		Expiry:          WallClock,
		KeepOnRelease:   true,
		DeleteOnRelease: true,
		TTL:             true,
		LeaseStep:       time.Millisecond,
	}
}

func (DyndbMutex) sealed() {}
