package layout

import "time"

// DynamoDLM is the layout of dynamo-dlm 2.x or, with NoSlots, of dynamo-dlm 1.x, whose
// processes may share the table. Records have no owner. A release deletes the record, and
// with it leasehold's token.
//
// A dynamo-dlm client never renews, and decides by its own clock. Therefore a leasehold
// client stops trusting its lock at expiry − MaxSkew − margin, and takes over at expiry +
// MaxSkew + one second.
type DynamoDLM struct {
	NoSlots bool          // uses the layout of 1.x, without a sort key in the table
	MaxSkew time.Duration // greatest difference between two clocks of the fleet; default 2 s
}

// Name returns "dynamo-dlm".
func (DynamoDLM) Name() string { return "dynamo-dlm" }

// Capabilities returns what the layout supports: neither data nor attributes. A release
// deletes the record.
func (l DynamoDLM) Capabilities() Capabilities {
	return Capabilities{
		Expiry:          WallClock,
		DeleteOnRelease: true,
		SortKey:         !l.NoSlots,
		LeaseStep:       time.Second,
	}
}

func (DynamoDLM) sealed() {}
