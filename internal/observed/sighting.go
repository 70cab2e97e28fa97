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
