package decide

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// Constants for the pauses of a waiter without a place in the queue of the record.
const (
	longestOutside = 12 * time.Second
	firstOutside   = 250 * time.Millisecond // longest pause after the first read; after a longer pause, a key with few waiters outside the queue could be idle
	leastAhead     = 8                      // a waiter outside the queue pauses at least as long as a queued waiter with this many waiters ahead of it
	mostOfWait     = 1. / 32                // shortest pause, as a fraction of the waiter's wait so far
	unmoved        = 1. / 10                // pause if the front has hardly moved since the waiter's first read, as a fraction of the waiter's wait so far
	hardly         = 1. / 8                 // a front that moves more slowly than this has hardly moved; in seconds per second
	toFront        = 1. / 2                 // pause, as a fraction of the estimated time until the front reaches the waiter
	spread         = 1. / 4                 // largest random deviation of a pause, as a fraction of the pause
)

// Outside contains the facts from which a waiter without a place in the queue of a record
// computes its pauses. Each entry of the queue contains the time when its waiter began to
// wait, by the clock of that waiter's client. So a wrong clock can make a waiter read less
// often, or join the queue later. No lock depends on these clocks.
type Outside struct {
	Waited    time.Duration
	RoundTrip time.Duration // see RoundTrip
	Ahead     time.Duration // time from the front of the queue to the time when this waiter began to wait; zero or negative if the waiter is overdue; see Front
	Moved     time.Duration // time by which the front has moved since the waiter's first read
	Seen      time.Duration // time from the waiter's first read to its last; 0 after one read
	Last      time.Duration // duration of the last pause
}

// Front returns the front of a queue: the median of the times in began, when the waiters in
// the queue began to wait. Zero times in began are unknown, and Front ignores them. It
// returns the zero time if all times are unknown. A waiter outside the queue is overdue if
// it began to wait before the front.
//
// If the front were a later time than the median, more waiters would be overdue, and would
// compete for the last places of the queue. With 64 clients and the third quartile as the
// front, each grant costs three more reads, and waits are longer.
func Front(began []time.Time) time.Time {
	known := slices.DeleteFunc(slices.Clone(began), time.Time.IsZero)
	if len(known) == 0 {
		return time.Time{}
	}
	slices.SortFunc(known, time.Time.Compare)
	return known[len(known)/2]
}

// pause returns the time until the waiter's next read. age is the age of the current grant,
// and u is a random number, uniform in [0,1). The pause is half of the estimated time until
// the front of the queue reaches the waiter. The estimate assumes that the front moves as
// fast as it has so far. After only one read, the speed is unknown. The estimate then
// assumes one second per second, as in a queue of constant length where all waiters wait
// equally long.
//
// If the front has hardly moved, there is no estimate. While all waiters in the queue have
// begun to wait at nearly the same time, the front does not move. Later it moves by a long
// time at once. A waiter that has waited for a long time, or is far from the front, reads
// rarely, because there may be thousands of such waiters.
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
