package decide

import (
	"math"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// Instant is a reading of two clocks at the same time. Mono is CLOCK_MONOTONIC, which stops
// while the machine is suspended. Boot is CLOCK_BOOTTIME, which does not stop. On systems
// other than Linux, Boot is the wall clock.
type Instant struct{ Mono, Boot time.Duration }

// Never is an Instant that is later than every reading of the clocks.
var Never = Instant{Mono: math.MaxInt64, Boot: math.MaxInt64}

// Add returns the Instant that is later than i by d on both clocks.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{Mono: durations.Sum(i.Mono, d), Boot: durations.Sum(i.Boot, d)}
}

// Past reports whether at least one of the two clocks has reached until.
func (i Instant) Past(until Instant) bool { return i.Remaining(until) <= 0 }

// Remaining returns the time from i to until, by the clock that leaves less time. It
// returns zero or a negative time if that clock has reached until.
func (i Instant) Remaining(until Instant) time.Duration {
	return min(durations.Less(until.Mono, i.Mono), durations.Less(until.Boot, i.Boot))
}

// Since returns the time from then to i, by the clock that shows more time. Use it for
// periods that are longer than a request: DynamoDB's clock continues to run while this
// machine is suspended.
func (i Instant) Since(then Instant) time.Duration {
	return max(durations.Less(i.Mono, then.Mono), durations.Less(i.Boot, then.Boot))
}

// Earlier returns an Instant with the earlier reading of i and o on each clock.
func (i Instant) Earlier(o Instant) Instant {
	return Instant{Mono: min(i.Mono, o.Mono), Boot: min(i.Boot, o.Boot)}
}

// TrustedUntil returns the time when a holder must stop trusting a grant or renewal: sent +
// lease − margin. sent is a time before the client sent the request. DynamoDB cannot have
// written the record before that time. So every other client begins to count the lease
// later than the holder.
func TrustedUntil(sent Instant, lease, margin time.Duration) Instant {
	return sent.Add(durations.Less(lease, margin))
}
