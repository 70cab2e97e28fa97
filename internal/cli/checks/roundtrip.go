package checks

import (
	"fmt"
	"math"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/lease"
)

// leastTries is how many tries to renew a lease should leave time for. The default
// lease leaves it for four after the first.
const leastTries = 4

// roundTrip compares the round trip with the lease: how often a renewal can be tried
// between the time it is due and the end of trust. took is sorted.
func roundTrip(length, skew time.Duration, what string, took []time.Duration) []Finding {
	if len(took) == 0 {
		return nil
	}
	timing := lease.Usual(length, skew)
	p50, p99 := Percentile(took, 0.5), Percentile(took, 0.99)
	n := triesIn(timing, p99)
	f := Finding{
		Check: "round trip", State: OK,
		What: fmt.Sprintf("p50 %s, p99 %s of %d %s; a lease of %s is renewed every %s and trusted for %s: time for %s tries",
			roundTripText(p50), roundTripText(p99), len(took), what, wording.Duration(timing.Lease), wording.Duration(timing.Every), wording.Duration(timing.Trust()), count(n)),
		Values: map[string]any{
			"p50Ms": float64(p50.Microseconds()) / 1000, "p99Ms": float64(p99.Microseconds()) / 1000, "requests": len(took),
			"leaseMs": timing.Lease.Milliseconds(), "renewEveryMs": timing.Every.Milliseconds(), "trustMs": timing.Trust().Milliseconds(), "tries": n,
		},
	}
	if isSlow(timing, p99) {
		f.State = Warning
		if n < 2 {
			f.State = Fatal
		}
		f.Do = fmt.Sprintf("use a lease of at least %s (-l, or Config.Lease), or a table that is nearer", wording.Duration(leaseFor(p99, timing.Skew)))
	}
	return []Finding{f}
}

// triesIn is how many requests of that time, one after another, fit between the time
// a renewal is due and the end of trust.
func triesIn(t lease.Timing, took time.Duration) int {
	return int(min((t.Trust()-t.Every)/max(took, time.Microsecond), math.MaxInt32))
}

// isSlow reports whether requests of that time leave too few tries, or take a good part
// of the time between two renewals: then each wait for a grant is long as well, and one
// reply that is slower than that is given up.
func isSlow(t lease.Timing, took time.Duration) bool {
	return triesIn(t, took) < leastTries || took > t.Every/4
}

// leaseFor is the shortest lease, in whole seconds, for which requests of that time are
// not slow.
func leaseFor(took, skew time.Duration) time.Duration {
	length := max(time.Second, skew+time.Second)
	for isSlow(lease.Usual(length, skew), took) {
		length += time.Second
	}
	return length
}

// roundTripText formats a round trip: 0.41ms, 3.2ms, 152ms.
func roundTripText(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 1:
		return fmt.Sprintf("%.2fms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1fms", ms)
	}
	return fmt.Sprintf("%.0fms", ms)
}

// count formats a number of tries: beyond some it does not matter.
func count(n int) string {
	if n > 100 {
		return "more than 100"
	}
	return fmt.Sprint(n)
}

// Percentile returns the value that a share p of values, in (0, 1], does not exceed
// (nearest rank). values must be sorted. 0: there are none.
func Percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	return values[max(int(math.Ceil(p*float64(len(values))))-1, 0)]
}
