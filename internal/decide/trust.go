package decide

import (
	"math"
	"time"
)

// Instant is a reading of two clocks that cannot be set. Mono stands still
// while the machine is suspended (CLOCK_MONOTONIC), Boot does not
// (CLOCK_BOOTTIME; elsewhere than on Linux the wall clock takes its place).
type Instant struct{ Mono, Boot time.Duration }

// Never is later than every instant that a clock reads, by 146 years, which leaves
// room to reckon with clocks that read less than nothing.
var Never = Instant{Mono: math.MaxInt64 / 2, Boot: math.MaxInt64 / 2}

// Add returns the instant d later on both clocks; it saturates, since a lease
// may be "for ever".
func (i Instant) Add(d time.Duration) Instant {
	return Instant{Mono: saturate(i.Mono, d), Boot: saturate(i.Boot, d)}
}

func saturate(t, d time.Duration) time.Duration {
	if sum := t + d; d <= 0 || sum > t {
		return sum
	}
	return 1<<63 - 1
}

// Past reports whether either clock has reached until: a holder believes the
// clock that says more time has passed.
func (i Instant) Past(until Instant) bool { return i.Remaining(until) <= 0 }

// Remaining is the time left until then by the clock that says less.
func (i Instant) Remaining(until Instant) time.Duration {
	return min(until.Mono-i.Mono, until.Boot-i.Boot)
}

// Since is the time that has passed since then by the clock that says more. By
// it goes whatever outlives a request: the server's clock runs on in suspend.
func (i Instant) Since(then Instant) time.Duration {
	return max(i.Mono-then.Mono, i.Boot-then.Boot)
}

// Earlier returns on each clock the earlier of two instants.
func (i Instant) Earlier(o Instant) Instant {
	return Instant{Mono: min(i.Mono, o.Mono), Boot: min(i.Boot, o.Boot)}
}

// TrustedUntil is the instant up to which the holder may believe in a grant or
// renewal whose attempt was begun at sent. The lease counts from before the
// request left, and ends a margin early: the record cannot have been written
// sooner, and no observer can have begun to watch it sooner.
func TrustedUntil(sent Instant, lease, margin time.Duration) Instant {
	return sent.Add(lease - margin)
}
