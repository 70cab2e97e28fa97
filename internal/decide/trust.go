package decide

import (
	"math"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// Instant is a reading of two clocks that cannot be set. Mono stops while the machine is
// suspended (CLOCK_MONOTONIC). Boot does not (CLOCK_BOOTTIME; on systems other than Linux,
// the wall clock is used instead).
type Instant struct{ Mono, Boot time.Duration }

// Never is later than every reading of a clock.
var Never = Instant{Mono: math.MaxInt64, Boot: math.MaxInt64}

// Add returns the instant d later on both clocks.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{Mono: durations.Sum(i.Mono, d), Boot: durations.Sum(i.Boot, d)}
}

// Past reports whether either clock has reached until. A holder uses the clock on which more
// time has passed.
func (i Instant) Past(until Instant) bool { return i.Remaining(until) <= 0 }

// Remaining returns the time left until the given instant, measured by the clock that
// leaves less time.
func (i Instant) Remaining(until Instant) time.Duration {
	return min(durations.Less(until.Mono, i.Mono), durations.Less(until.Boot, i.Boot))
}

// Since returns the time since the given instant, measured by the clock that shows more
// time. Use it for anything that lasts longer than a request: the server's clock keeps
// running while this machine is suspended.
func (i Instant) Since(then Instant) time.Duration {
	return max(durations.Less(i.Mono, then.Mono), durations.Less(i.Boot, then.Boot))
}

// Earlier returns the earlier of two instants, for each clock separately.
func (i Instant) Earlier(o Instant) Instant {
	return Instant{Mono: min(i.Mono, o.Mono), Boot: min(i.Boot, o.Boot)}
}

// TrustedUntil returns the time when a holder must stop trusting a grant or renewal: sent +
// lease − margin. sent is the time when the attempt started. The lease counts from before
// the request was sent: the record cannot have been written earlier, so no observer can
// have seen it earlier.
func TrustedUntil(sent Instant, lease, margin time.Duration) Instant {
	return sent.Add(durations.Less(lease, margin))
}
