package decide

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// Constants for the pauses of a waiter without a place in the queue.
const (
	longestOutside = 12 * time.Second
	firstOutside   = 250 * time.Millisecond // longest first pause; a longer one would leave the key idle if few waiters wait outside the queue
	leastAhead     = 8                      // a waiter outside the queue pauses at least as long as a queued waiter with this many waiters ahead of it
	mostOfWait     = 1. / 32                // shortest pause, as a fraction of the waiter's wait so far
	unmoved        = 1. / 10                // pause if the front has hardly moved since the waiter first saw it, as a fraction of the waiter's wait so far
	hardly         = 1. / 8                 // a front that moves more slowly has hardly moved, in seconds per second
	toFront        = 1. / 2                 // pause, as a fraction of the estimated time until the waiter is at the front
	spread         = 1. / 4                 // random deviation of a pause, as a fraction of the pause
)

// Outside holds the facts from which a waiter without a place in a record's queue computes
// its pauses. Each entry of the queue contains the time when its waiter began to wait. The
// clock of that waiter's client gives this time. So clocks decide which waiter has waited
// longer, but never which client holds the key.
type Outside struct {
	Waited    time.Duration
	RoundTrip time.Duration // see RoundTrip
	Ahead     time.Duration // time from the front to the start of this wait; zero or negative if the waiter is overdue
	Moved     time.Duration // time by which the front has moved since the waiter first saw it
	Seen      time.Duration // time since the waiter first saw the front; 0 after one read
	Last      time.Duration // duration of the last pause
}

// Front returns the median of the times when the waiters in a queue began to wait. began
// contains these times; a zero time is unknown and ignored. Front returns the zero time if
// all are unknown. A waiter outside the queue is overdue if it began to wait before the
// front.
//
// A later front would make more waiters overdue, so that chance would decide more often.
// With 64 clients and the front at three quarters of the times instead of one half, a
// section costs three more reads, and waits are longer.
func Front(began []time.Time) time.Time {
	known := slices.DeleteFunc(slices.Clone(began), time.Time.IsZero)
	if len(known) == 0 {
		return time.Time{}
	}
	slices.SortFunc(known, time.Time.Compare)
	return known[len(known)/2]
}

// pause returns the time until the next read of a grant of the given age. It is half of the
// estimated time until the front of the queue reaches the waiter. The estimate assumes that
// the front moves as fast as it has so far. After only one read, no speed is known. The
// estimate then assumes one second per second, as in a queue of constant length where all
// waiters wait equally long. A front that has hardly moved gives no estimate: it stands still
// while waiters are served that began at nearly the same time, and moves on all at once. A
// waiter reads rarely if it has waited for a long time or is
// far from the front, because there may be thousands of such waiters.
func (o Outside) pause(age time.Duration, u float64) time.Duration {
	ahead := max(o.Ahead, 0)
	var wait time.Duration
	switch {
	case o.Seen == 0:
		wait = min(durations.Scale(ahead, toFront), firstOutside)
	case o.Moved > durations.Scale(o.Seen, hardly):
		wait = min(durations.Scale(ahead, toFront*float64(o.Seen)/float64(o.Moved)), durations.Times(o.Last, 2))
	default:
		wait = min(durations.Scale(o.Waited, unmoved), durations.Times(o.Last, 2))
	}
	least := max(Position{Ahead: leastAhead, RoundTrip: o.RoundTrip, Most: longestOutside}.pause(age), durations.Scale(o.Waited, mostOfWait))
	return durations.Scale(min(max(wait, least), longestOutside), 1-spread+2*spread*u)
}
