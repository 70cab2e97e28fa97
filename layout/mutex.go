package layout

import "time"

// DyndbMutex is shared with dyndb-mutex 0.x. That library counts any error of
// DynamoDB as an acquired lock: while it gets errors, throttling for one,
// nothing excludes it. Its grant and its release write whole items and erase
// our token. It never renews, and goes by its own clock: a holder of ours stops
// trusting MaxSkew and the margin before the record expires, and takes over
// MaxSkew and a millisecond after.
type DyndbMutex struct {
	MaxSkew time.Duration // most by which the fleet's clocks differ; default 2 s
}

// Name returns "dyndb-mutex".
func (DyndbMutex) Name() string { return "dyndb-mutex" }

// Capabilities says that records carry nothing, and may stay after their
// release.
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
