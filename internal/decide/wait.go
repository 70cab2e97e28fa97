package decide

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// View holds the facts that a waiter knows about the record of the key that it wants.
type View struct {
	Known    bool          // a reply has shown the record
	Free     bool          // there is no record, or it is released
	Ours     bool          // the record shows an attempt of this client, but none of its callers holds the key by that attempt
	Grant    time.Duration // time when the current grant was first seen, in monotonic time
	Dead     time.Duration // time when the holder will be dead if the record does not change, in monotonic time
	PollMin  time.Duration
	PollMax  time.Duration
	Looked   time.Duration // time when a reply last showed the record, in monotonic time
	Position *Position     // position in the record's queue; nil if the waiter is not in the queue
	Outside  *Outside      // set if the waiter found no room in the queue; nil if it is in the queue, or polls with random pauses
}

// Position is the position of a waiter in the queue of a record.
type Position struct {
	Ahead     int           // number of waiters before this one
	RoundTrip time.Duration // see RoundTrip
	Most      time.Duration // the longest pause; see LongestPauseInQueue
}

// FirstRoundTrip is a client's estimate of a round trip before its first reply.
const FirstRoundTrip = 10 * time.Millisecond

// RoundTrip returns the estimate of a round trip after a request that took the given time.
// known is the estimate before that request. The estimate follows the fast requests more
// quickly than the slow ones, and a slow request counts as two round trips at most.
//
// A waiter behind others pauses for multiples of the round trip. After a pause computed from
// one slow request, it would be late for its turn. The key would be idle, and the age of its
// grant would make the pauses of the other waiters longer, too.
func RoundTrip(known, took time.Duration) time.Duration {
	if took < known {
		return durations.Less(known, durations.Less(known, took)/4)
	}
	return durations.Sum(known, durations.Less(min(took, durations.Times(known, 2)), known)/8)
}

// LongestQueuePause is the longest pause of a waiter in the queue of a record.
const LongestQueuePause = time.Second

// Bounds of the result of HandOverLease.
const (
	shortestHandOver = 3 * time.Second
	longestHandOver  = 10 * time.Second
)

// HandOverLease returns the lease with which a client hands a key to another client's
// waiter. The result is half of the client's own lease, limited to the range from 3 s to 10
// s, and never longer than the client's own lease. If the waiter is dead, it blocks the key
// for the hand-over lease. If the waiter is alive, it keeps the key even if its renewals
// are throttled for almost that long.
func HandOverLease(lease time.Duration) time.Duration {
	return min(max(lease/2, shortestHandOver), longestHandOver, lease)
}

// suspensions is the number of leases for which a queue is suspended.
const suspensions = 6

// SuspendedUntil returns the time until which a client with the given lease suspends a
// queue; wall is the time on the client's clock. The client has just taken the key over
// from a dead waiter to which the key had been handed. Other waiters may also be dead, and
// each would block the key for a hand-over lease. While a queue is suspended, the key is
// handed to none of its waiters. So dead waiters cost only one hand-over lease in that
// time.
func SuspendedUntil(wall time.Time, lease time.Duration) time.Time {
	return wall.Add(durations.Times(lease, suspensions))
}

// IsSuspended reports whether a queue that was suspended up to the time until is still
// suspended. wall is the time on the clock of the client that asks, and lease is the
// client's lease. A time further ahead than such a client would set comes from a wrong
// clock, and is ignored.
func IsSuspended(until, wall time.Time, lease time.Duration) bool {
	return wall.Before(until) && !until.After(SuspendedUntil(wall, lease))
}

// leastLongest is the smallest result of LongestPauseInQueue. Every lease that a client may
// have gives a longer pause. A record may show a shorter lease; even then, it is not read
// more often than this.
const leastLongest = 25 * time.Millisecond

// LongestPauseInQueue returns the longest pause of a waiter in a queue. own is the lease of
// the waiter, and held is the lease of the holder. The holder may hand the key to the
// waiter during the pause. When the waiter then reads the record, three quarters of the
// hand-over lease must be left, or of the waiter's own lease if that is shorter.
func LongestPauseInQueue(own, held time.Duration) time.Duration {
	return max(min(LongestQueuePause, min(own, HandOverLease(held))/4), leastLongest)
}

// Limits on the requests to join a queue (joins) that a call may send. A damaged record
// never shows the joins, and a call without limits would repeat them. The same applies to a
// record with a queue that is erased repeatedly.
const (
	joinsAtOnce = 16
	joinEvery   = 4 * time.Second
)

// Joins limits the joins that a call may send: sixteen at once, and one more every four
// seconds. The zero Joins allows all sixteen.
type Joins struct {
	spent int
	since time.Duration // monotonic time from which joins are added, one every joinEvery
}

// Take uses up one of the joins that are allowed at the time now. It returns false if none
// is left.
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

// queuesAtOnce is the number of queues that a call for one of several keys joins at first.
// The call joins one more after a wait of queuesMore, and then whenever its wait has
// doubled. The number is small because several queues may hand a key to the call. The call
// must hand back a key that it no longer needs, which delays other waiters.
const (
	queuesAtOnce = 2
	queuesMore   = time.Second
)

// Queues returns how many queues a call for one of several keys should be in after it has
// waited for the given time: two, and one more each time its wait has doubled. So the call
// is not stuck if it first chose the queue of a key that is held for hours.
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
	Take     Move = iota // write a grant: the key is free, or its record has not been read yet
	TakeOver             // write a grant that also replaces the observed version
	Look                 // read the record after the pause
)

// lately is the age up to which a read counts as recent. After a recent read, a takeover
// needs no other read. After an older read, the waiter reads again first. Where thousands
// of waiters poll rarely, another client has usually taken the key over in the meantime.
const lately = time.Second

// Next returns the next step of a waiter, and the pause before it. u is uniform in [0,1).
// Pauses grow with the age of the grant: see Pause. Once the holder is dead, a waiter that
// has read the record recently writes the conditional takeover without another read.
func Next(v View, now time.Duration, u float64) (Move, time.Duration) {
	switch {
	case !v.Known, v.Free:
		return Take, 0
	case v.Ours:
		return TakeOver, 0
	case now >= v.Dead && durations.Less(now, v.Looked) > lately:
		return Look, 0
	case now >= v.Dead:
		return TakeOver, 0
	}
	age := durations.Less(now, v.Grant)
	pause := Pause(age, v.PollMin, v.PollMax, u)
	switch {
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

// DeadByVersion returns the time when a holder is dead if it still has the version that was
// first seen at the time since. The result is since + lease, by the observer's monotonic
// clock. Wall clocks are not used.
func DeadByVersion(since, lease time.Duration) time.Duration { return durations.Sum(since, lease) }

// DeadByClock returns the monotonic time when a holder with an expiry time in its record is
// dead; the result may be in the past. The holder is dead once this machine's wall clock
// shows expires + skew + step. That clock shows wall at the monotonic time now.
func DeadByClock(expires time.Time, skew, step time.Duration, wall time.Time, now time.Duration) time.Duration {
	return durations.Sum(now, expires.Add(durations.Sum(skew, step)).Sub(wall))
}

// LooksDead reports whether a holder appears dead because, according to wall clocks, its
// record was written at least a lease ago. If written is zero, the time is unknown and the
// holder does not appear dead. Wall clocks differ, so the result never proves that the
// holder is dead. It only decides whether it is worthwhile to observe the holder for a
// lease.
func LooksDead(written time.Time, lease time.Duration, wall time.Time) bool {
	return !written.IsZero() && wall.Sub(written) >= lease
}

// soon returns the longest pause that matters little to a waiter behind a grant of the given
// age. It is a quarter of a second up to an age of five seconds, and a twentieth of the age
// from then on. So a waiter polls rarely in a long wait.
func soon(age time.Duration) time.Duration { return max(250*time.Millisecond, age/20) }

// Pause returns the time between two reads of a grant of the given age, a random time from
// half to one and a half of a mean. The mean is the age, or soon(age) if that is less,
// limited to the range from low to high. Random pauses keep waiters apart. A wider range
// would make the average wait longer for the same number of reads. If a key is held for
// five seconds or more, a waiter is late by at most a tenth of that time.
func Pause(age, low, high time.Duration, u float64) time.Duration {
	return durations.Scale(min(max(min(age, soon(age)), low), high), 0.5+u)
}

// headPause is the longest pause of the head of a queue, however old the grant is. It can
// be short, because only one waiter of a queue reads this often. A key that is released
// during the pause is idle for half of the pause on average.
const headPause = 250 * time.Millisecond

// pause returns the time between two reads of a grant of the given age. The head pauses for
// a tenth of the age, and for a quarter of a second at most. Waiters behind the head have
// more time. Pauses are not random, as waiters in a queue do not race.
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
	return durations.Scale(min(durations.Times(first, 1<<min(n, 62)), most), u)
}
