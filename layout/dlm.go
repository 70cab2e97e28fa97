package layout

import "time"

// DynamoDLM is the layout of dynamo-dlm 2.x or, with NoSlots, of dynamo-dlm 1.x. Processes
// of that library may share the table. Records have no owner. A release deletes the record,
// and with it leasehold's token.
//
// A dynamo-dlm client never renews, and decides by its own wall clock when a lock has expired.
// Therefore a leasehold client stops trusting its lock at expiry − MaxSkew − Config.Margin. It
// takes over the key of a dead holder at expiry + MaxSkew + one second.
type DynamoDLM struct {
	NoSlots bool          // use the layout of dynamo-dlm 1.x, whose table has no sort key
	MaxSkew time.Duration // greatest difference between the clocks of two machines that use the table; default 2 s
}

// Name returns "dynamo-dlm".
func (DynamoDLM) Name() string { return "dynamo-dlm" }

// Capabilities returns the features that this layout supports. Records have neither data nor
// attributes, and a release deletes the record.
func (l DynamoDLM) Capabilities() Capabilities {
	return Capabilities{
		Expiry:          WallClock,
		DeleteOnRelease: true,
		SortKey:         !l.NoSlots,
		LeaseStep:       time.Second,
	}
}

func (DynamoDLM) sealed() {}
