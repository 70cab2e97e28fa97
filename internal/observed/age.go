package observed

import "time"

// Time is when something was observed, as other processes can read it.
type Time struct {
	Boot   string        // names a clock that several processes of one machine read; empty: unknown
	ByBoot time.Duration // what that clock showed; 0: unknown
	Wall   time.Time
}

// Age is how old, at least, an observation is that another process made at t. If both
// processes read the same boot clock, that clock tells. Otherwise the wall clocks are
// compared, which differ by maxSkew at most. With a maxSkew of 0 the age is not known.
func (t Time) Age(now Time, maxSkew time.Duration) (age time.Duration, known bool) {
	switch {
	case t.Boot != "" && t.Boot == now.Boot && t.ByBoot > 0:
		return max(now.ByBoot-t.ByBoot, 0), true
	case maxSkew > 0:
		return max(now.Wall.Sub(t.Wall)-maxSkew, 0), true
	}
	return 0, false
}
