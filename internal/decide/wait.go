package decide

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// View is a waiter's knowledge of the record of the key that it wants.
type View struct {
	Known    bool          // an answer has shown the record
	Free     bool          // the record is absent or released
	Ours     bool          // the record shows an unclaimed attempt of this client
	Grant    time.Duration // when the current grant was first seen, in monotonic time
	Dead     time.Duration // when the holder is dead if the record does not change, in monotonic time
	PollMin  time.Duration
	PollMax  time.Duration
	Looked   time.Duration // when a reply last showed the record, in monotonic time
	Position *Position     // in the record's queue; nil if it is not there
	Outside  *Outside      // set if it found no place there; nil if it has one, or polls with random pauses
}

// Position is the position of a waiter in the queue of a record.
type Position struct {
	Ahead     int           // how many come before it
	RoundTrip time.Duration // the last one measured
	Most      time.Duration // the longest pause; see LongestPauseInQueue
}

// LongestQueuePause is the longest pause of a waiter in the queue of a record.
const LongestQueuePause = time.Second

// Bounds of HandOverLease.
const (
	shortestHandOver = 3 * time.Second
	longestHandOver  = 10 * time.Second
)

// HandOverLease returns the lease of a key that is handed to a waiter of another client, if
// the client that hands it over has that lease: half of it, from 3 s to 10 s, and never
// more than that lease. A waiter that has died blocks the key for so long, and the writes
// of a live one may be throttled for almost so long.
func HandOverLease(lease time.Duration) time.Duration {
	return min(max(lease/2, shortestHandOver), longestHandOver, lease)
}

// suspensions is for how many leases a queue is suspended.
const suspensions = 6

// SuspendedUntil returns until when the queue of a record is suspended by a client with
// that lease, whose clock reads wall. It took the key over from a waiter that was handed it
// and had died. Others who wait may be as dead, and each costs a hand-over lease: so nobody
// is handed the key until then, and dead waiters cost one hand-over lease in that time.
func SuspendedUntil(wall time.Time, lease time.Duration) time.Time {
	return wall.Add(durations.Times(lease, suspensions))
}

// IsSuspended reports whether a queue that is suspended until then still is when the clock of
// a client with that lease shows wall. A time further ahead than such a client would ever set
// comes from a wrong clock, and is ignored.
func IsSuspended(until, wall time.Time, lease time.Duration) bool {
	return wall.Before(until) && !until.After(SuspendedUntil(wall, lease))
}

// leastLongest is less than that pause for any lease that a client may have: a record may show
// another, and then nobody reads it more often.
const leastLongest = 25 * time.Millisecond

// LongestPauseInQueue returns the longest pause of a waiter with the lease own behind a
// holder with the lease held. The waiter may be handed the key unseen: three quarters of
// the hand-over lease must be left when it reads that, and as much of its own lease, which
// it trusts if that is shorter.
func LongestPauseInQueue(own, held time.Duration) time.Duration {
	return max(min(LongestQueuePause, min(own, HandOverLease(held))/4), leastLongest)
}

// How many joins a call sends: a record that is damaged, or erased again and again, keeps
// no queue.
const (
	joinsAtOnce = 16
	joinEvery   = 4 * time.Second
)

// Joins is a bucket of the joins that a call may send: sixteen, and one more every four
// seconds. The zero Joins is full.
type Joins struct {
	spent int
	since time.Duration // monotonic time from which joins are added, one each joinEvery
}

// Take takes one at now, and reports whether there was one.
func (j *Joins) Take(now time.Duration) bool {
	back := int64(durations.Less(now, j.since) / joinEvery)
	if back >= int64(j.spent) {
		j.spent, j.since = 0, now
	} else {
		j.spent, j.since = j.spent-int(back), durations.Sum(j.since, durations.Times(joinEvery, back))
	}
	if j.spent == joinsAtOnce {
		return false
	}
	j.spent++
	return true
}

// queuesAtOnce is the number of queues that a call for one of several keys joins at first,
// and queuesMore the wait after which it joins one more. A call that no longer needs a key
// gives its hand-over back, which delays that key.
const (
	queuesAtOnce = 2
	queuesMore   = time.Second
)

// Queues returns in how many queues a call stands that has waited so long for one of
// several keys: two, and one more each time its wait has doubled. A key that is held for
// hours does not hold up who has chosen its queue.
func Queues(waited time.Duration) int {
	n := queuesAtOnce
	for ; waited >= queuesMore; waited /= 2 {
		n++
	}
	return n
}

// Move is the next step of a waiter.
type Move int

// Values of Move.
const (
	Take     Move = iota // write a grant: the key is free, or nothing is known
	TakeOver             // write a grant that also replaces the observed version
	Look                 // read the record, after the pause
)

// lately is the longest time since the last read after which a waiter takes a key over
// without another read. Thousands may poll rarely, and then another client has mostly been
// first.
const lately = time.Second

// Next returns what a waiter does next, and the pause before it; u is uniform in
// [0,1). Pauses grow with the age of the grant, as Pause says. Once the holder is dead,
// a waiter that has looked lately does not read first: it writes the conditional takeover.
func Next(v View, now time.Duration, u float64) (Move, time.Duration) {
	switch {
	case !v.Known, v.Free:
		return Take, 0
	case v.Ours:
		return TakeOver, 0
	}
	if now >= v.Dead {
		if durations.Less(now, v.Looked) > lately {
			return Look, 0
		}
		return TakeOver, 0
	}
	pause := Pause(durations.Less(now, v.Grant), v.PollMin, v.PollMax, u)
	switch age := durations.Less(now, v.Grant); {
	case v.Position != nil:
		pause = v.Position.pause(age)
	case v.Outside != nil:
		pause = v.Outside.pause(age, u)
	}
	if left := durations.Less(v.Dead, now); pause >= left {
		return TakeOver, left
	}
	return Look, pause
}

// DeadByVersion returns when a holder is dead whose version was first seen at
// since: since + lease, by the observer's monotonic clock. Wall clocks play no
// part.
func DeadByVersion(since, lease time.Duration) time.Duration { return durations.Sum(since, lease) }

// DeadByClock returns when a holder is dead whose record has an expiry time, or has
// been since, in monotonic time: expires + skew + step, by this machine's wall clock.
// That clock reads wall at the monotonic time now.
func DeadByClock(expires time.Time, skew, step time.Duration, wall time.Time, now time.Duration) time.Duration {
	return durations.Sum(now, expires.Add(durations.Sum(skew, step)).Sub(wall))
}

// LooksDead reports whether a holder looks dead by its record's own times: it was
// written a lease ago or longer, as wall clocks say. A zero written is not known, and
// no sign of death. Wall clocks differ, so this decides only whether it is worth while
// to watch the holder for a lease, and never that it is dead.
func LooksDead(written time.Time, lease time.Duration, wall time.Time) bool {
	return !written.IsZero() && wall.Sub(written) >= lease
}

// soon returns the pause that nobody minds behind a grant of that age: a quarter of a
// second until the age is five seconds, and a twentieth of it from then on. So who
// waits for long looks rarely.
func soon(age time.Duration) time.Duration { return max(250*time.Millisecond, age/20) }

// Pause returns the time between two reads of a grant of that age: uniform between half
// of a mean and as much above it. The mean is the age, or what is soon for it, from low to
// high. Pauses that differ keep waiters apart; pauses that differ more are longer on average
// for as many reads. Nobody comes late by more than a tenth of a hold of five seconds, or of
// a longer one.
func Pause(age, low, high time.Duration, u float64) time.Duration {
	return durations.Scale(min(max(min(age, soon(age)), low), high), 0.5+u)
}

// headPause is the longest pause of the head of a queue, however old the grant is: only one
// waiter reads so often, and the key is idle for half of that on average.
const headPause = 250 * time.Millisecond

// pause returns the time between two reads of a grant of that age. The head reads as
// often as a tenth of the age, and four times a second at least: it waits that much longer
// at most than the holder works. Those behind it have time. No pause is random, as there is
// no race.
func (p Position) pause(age time.Duration) time.Duration {
	const least = time.Millisecond
	roundTrip := max(p.RoundTrip, least)
	if p.Ahead == 0 {
		return min(max(age/10, roundTrip), headPause, p.Most)
	}
	return min(durations.Times(max(durations.Times(roundTrip, 2), age/4), int64(p.Ahead)), p.Most)
}

// Backoff returns the pause before the nth retry of a failed request, n from 0:
// exponential backoff with full jitter (AWS Architecture Blog, "Exponential
// Backoff And Jitter").
func Backoff(n int, first, most time.Duration, u float64) time.Duration {
	ceiling := most
	if n < 20 {
		ceiling = min(durations.Times(first, 1<<n), most)
	}
	return durations.Scale(ceiling, u)
}
