package layout

import "time"

// DynamoDLM is shared with dynamo-dlm 2.x; with NoSlots, 1.x. Records name no
// owner. A release deletes the record, and our token with it. A dynamo-dlm
// client never renews, and goes by its own clock: a holder of ours stops
// trusting MaxSkew and the margin before the record expires, and takes over
// MaxSkew and a second after.
type DynamoDLM struct {
	NoSlots bool          // 1.x: no sort key
	MaxSkew time.Duration // most by which the fleet's clocks differ; default 2 s
}

// Name returns "dynamo-dlm".
func (DynamoDLM) Name() string { return "dynamo-dlm" }

// Capabilities says that records carry nothing and go with their release.
func (l DynamoDLM) Capabilities() Capabilities {
	return Capabilities{
		Expiry:          WallClock,
		DeleteOnRelease: true,
		SortKey:         !l.NoSlots,
		LeaseStep:       time.Second,
	}
}

func (DynamoDLM) sealed() {}
