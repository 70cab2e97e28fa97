package layout

import "time"

// DyndbMutex is the layout of dyndb-mutex 0.x, whose processes may share the table.
// Caution: dyndb-mutex treats every error of DynamoDB as an acquired lock. While a
// dyndb-mutex client gets errors, such as throttling, no lock keeps it out. Its grants and
// releases write whole items, and so erase leasehold's token.
//
// A dyndb-mutex client never renews, and decides by its own clock. Therefore a leasehold
// client stops trusting its lock at expiry − MaxSkew − margin, and takes over at expiry +
// MaxSkew + one millisecond.
type DyndbMutex struct {
	MaxSkew time.Duration // greatest difference between two clocks of the fleet; default 2 s
}

// Name returns "dyndb-mutex".
func (DyndbMutex) Name() string { return "dyndb-mutex" }

// Capabilities returns what the layout supports: neither data nor attributes. A release may
// keep or delete the record.
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
