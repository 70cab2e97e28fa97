package decide

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// Constants of a waiter without a place in the queue.
const (
	longestOutside = 12 * time.Second
	firstOutside   = 250 * time.Millisecond // its first pause at most: with more the key is idle where few wait outside
	leastAhead     = 8                      // it pauses as one so far behind the head, at least
	mostOfWait     = 1. / 32                // at least this part of its wait too
	unmoved        = 1. / 10                // this part of its wait, if the front has not moved
	toFront        = 1. / 2                 // this part of the time until the front has come to it
	spread         = 1. / 4                 // more or less, at random
)

// Outside is the knowledge of a waiter that has found no place in a record's queue. Each entry
// there says when the call of its waiter began, by the clock of that client. So clocks decide
// who waits longer; who holds the key, never.
type Outside struct {
	Waited    time.Duration
	RoundTrip time.Duration // the last one measured
	Ahead     time.Duration // from the front to when its own call began; not positive: it is overdue
	Moved     time.Duration // how far the front has come since the waiter first saw it
	Seen      time.Duration // since that first look; 0 after one look
	Last      time.Duration // its last pause
}

// Front returns the time that half of the calls in a queue began before, given when each of
// them did; the zero time if it is not known of any. Zero times are unknown. A call outside
// that began before the front is overdue. Of a later time than this there is more chance: with
// 64 clients, three quarters cost three more reads a section, and longer waits.
func Front(began []time.Time) time.Time {
	known := slices.DeleteFunc(slices.Clone(began), time.Time.IsZero)
	if len(known) == 0 {
		return time.Time{}
	}
	slices.SortFunc(known, time.Time.Compare)
	return known[len(known)/2]
}

// pause returns the time between two reads of a grant of that age: half of the time until the
// front will have come to the waiter, as fast as it has moved lately or, after one look, as
// time goes: in a queue that neither grows nor shrinks everybody waits equally long. There may
// be thousands outside: who has waited for long, or has far to go, looks rarely.
func (o Outside) pause(age time.Duration, u float64) time.Duration {
	ahead := max(o.Ahead, 0)
	var wait time.Duration
	switch {
	case o.Seen == 0:
		wait = min(durations.Scale(ahead, toFront), firstOutside)
	case o.Moved > 0:
		wait = min(durations.Scale(ahead, toFront*float64(o.Seen)/float64(o.Moved)), durations.Times(o.Last, 2))
	default:
		wait = min(durations.Scale(o.Waited, unmoved), durations.Times(o.Last, 2))
	}
	least := max(Position{Ahead: leastAhead, RoundTrip: o.RoundTrip, Most: longestOutside}.pause(age), durations.Scale(o.Waited, mostOfWait))
	return durations.Scale(min(max(wait, least), longestOutside), 1-spread+2*spread*u)
}
