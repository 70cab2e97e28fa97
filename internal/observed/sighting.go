package observed

import (
	"math"
	"time"
)

// Sighting is an observation as JSON, for other processes.
type Sighting struct {
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
	Version string `json:"version"`
	LeaseMs int64  `json:"leaseMs"`
	Since   string `json:"since"` // RFC 3339, by the wall clock
	Boot    string `json:"boot,omitempty"`
	BootMs  int64  `json:"bootMs,omitempty"`
}

// BootMs is what a boot clock showed, for a Sighting: rather younger than older.
func BootMs(shown time.Duration) int64 { return (shown + time.Millisecond - 1).Milliseconds() }

// ByBoot is what the boot clock showed. 0: unknown, or nothing that a clock shows.
func (s Sighting) ByBoot() time.Duration {
	if s.BootMs < 0 || s.BootMs > math.MaxInt64/int64(time.Millisecond) {
		return 0
	}
	return time.Duration(s.BootMs) * time.Millisecond
}

// Time is when something was observed, as other processes can read it.
type Time struct {
	Boot   string        // names a clock that several processes of one machine read; empty: unknown
	ByBoot time.Duration // what that clock showed; 0: unknown
	Wall   time.Time
}

// Age is how old, at least, an observation is that another process made at t. If both
// processes read the same boot clock, that clock tells. Otherwise the wall clocks are
// compared, which differ by maxSkew at most. With a maxSkew of 0 the age is not known: 0,
// as the version has been written by now.
func (t Time) Age(now Time, maxSkew time.Duration) time.Duration {
	switch {
	case t.Boot != "" && t.Boot == now.Boot && t.ByBoot > 0:
		return max(now.ByBoot-t.ByBoot, 0)
	case maxSkew > 0:
		return max(now.Wall.Sub(t.Wall)-maxSkew, 0)
	}
	return 0
}
