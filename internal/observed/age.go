package observed

import "time"

// Time is when something was observed, as other processes can read it.
type Time struct {
	Boot   string        // names a clock that several processes of one machine read; empty: unknown
	ByBoot time.Duration // what that clock showed; 0: unknown
	Wall   time.Time
}

// Age is the least that what another process observed at t can be old, if it is
// now here. Two processes that read one clock agree on that. Of others the wall
// clocks are compared, if they are known to differ by maxSkew at most. With no
// maxSkew nothing is known, not even the age, and it counts from now.
func (t Time) Age(now Time, maxSkew time.Duration) (age time.Duration, known bool) {
	switch {
	case t.Boot != "" && t.Boot == now.Boot && t.ByBoot > 0:
		return max(now.ByBoot-t.ByBoot, 0), true
	case maxSkew > 0:
		return max(now.Wall.Sub(t.Wall)-maxSkew, 0), true
	}
	return 0, false
}
