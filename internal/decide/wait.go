package decide

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// View contains the facts from which Next decides the next step of a waiter. All facts concern
// the record of the key that the waiter is to acquire.
type View struct {
	Known    bool          // a reply has shown the record
	Free     bool          // the table contains no record of the key, or the record is marked as released
	Ours     bool          // the record shows an attempt of this client, but no caller of this client holds the key by that attempt
	Grant    time.Duration // monotonic time when the client first saw the current grant
	Dead     time.Duration // monotonic time when the holder will be dead if it does not renew
	PollMin  time.Duration
	PollMax  time.Duration
	Looked   time.Duration // monotonic time when a reply last showed the record
	Position *Position     // position of the waiter in the queue of the record; nil if the waiter is not in the queue
	Outside  *Outside      // set if the waiter has found no room in the queue; nil if the waiter is in the queue, or polls as if there were no queue
}

// Position is the position of a waiter in the queue of a record.
type Position struct {
	Ahead     int           // number of waiters ahead of this waiter
	RoundTrip time.Duration // estimated time of one request; see the function RoundTrip
	Most      time.Duration // longest pause of this waiter; see LongestPauseInQueue
}

// FirstRoundTrip is a client's estimate of the round trip of a request before the client
// has received a reply.
const FirstRoundTrip = 10 * time.Millisecond

// RoundTrip returns the new estimate of the round trip after a request that took the given time.
// The parameter "known" is the old estimate. Slow requests raise it only slowly: queued waiters
// pause for multiples of it, and a key handed to a pausing waiter is idle.
func RoundTrip(known, took time.Duration) time.Duration {
	if took < known {
		return durations.Less(known, durations.Less(known, took)/4)
	}
	return durations.Sum(known, durations.Less(min(took, durations.Times(known, 2)), known)/8)
}

// LongestQueuePause is the longest pause of a waiter in the queue of a record.
const LongestQueuePause = time.Second

// LetOthers returns how long a client that was asked to step down lets waiters of other clients go
// first. In that time each waiter reads the record, unless it has found the queue full. The
// parameter pollMax is the longest mean pause between two reads.
func LetOthers(pollMax time.Duration) time.Duration {
	return durations.Times(max(pollMax, LongestQueuePause), 2)
}

// Bounds of the result of HandOverLease.
const (
	shortestHandOver = 3 * time.Second
	longestHandOver  = 10 * time.Second
)

// HandOverLease returns the lease with which a client, whose own lease is given, hands a key to
// another client. It is short because a dead waiter blocks the key that long. It has a lower limit
// because a live waiter's renewals may be throttled.
func HandOverLease(lease time.Duration) time.Duration {
	return min(max(lease/2, shortestHandOver), longestHandOver, lease)
}

// suspensions is the time for which a client suspends a queue, as a multiple of the
// client's lease.
const suspensions = 6

// SuspendedUntil returns the time until which a client, with the given lease, suspends a queue
// after a takeover from a dead waiter. Other waiters may be dead, too, and each would block the key
// for a hand-over lease.
func SuspendedUntil(wall time.Time, lease time.Duration) time.Time {
	return wall.Add(durations.Times(lease, suspensions))
}

// IsSuspended reports whether a queue is still suspended. The parameter "end" is the time until
// which a client has suspended it. The parameters wall and lease are the calling client's own. If
// end is later than SuspendedUntil(wall, lease), it comes from a wrong clock, and IsSuspended
// returns false.
func IsSuspended(end, wall time.Time, lease time.Duration) bool {
	return wall.Before(end) && !end.After(SuspendedUntil(wall, lease))
}

// leastLongest is the smallest result of LongestPauseInQueue. It matters only if a record contains
// a shorter lease than a client can configure. A waiter for the key of such a record may pause for
// more than a quarter of that lease.
const leastLongest = 25 * time.Millisecond

// LongestPauseInQueue returns the longest pause of a queued waiter. The parameters are the leases
// of the waiter (own) and of the holder (held). If the holder hands the key over during the pause,
// most of the hand-over lease, or of own if shorter, must be left when the pause ends.
func LongestPauseInQueue(own, held time.Duration) time.Duration {
	return max(min(LongestQueuePause, min(own, HandOverLease(held))/4), leastLongest)
}

// Limits on the joins of a call; a join is a write that adds an entry to a queue. If a record is
// damaged, or its queue is erased again and again, the call would otherwise send joins forever.
const (
	joinsAtOnce = 16
	joinEvery   = 4 * time.Second
)

// Joins limits the joins that a call may send: joinsAtOnce at first, and one more after
// each joinEvery. The zero Joins is the state before the first join.
type Joins struct {
	spent int
	since time.Duration // monotonic time from which spent falls by one in each joinEvery
}

// Take counts a join that the call is to send at the given time. If the call may not send a
// join at that time, Take returns false and counts nothing.
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

// queuesAtOnce is the number of queues that a call for one of several keys joins at first (see
// Queues). It is small because two holders may hand keys to the call at once. The call must then
// release one of the keys, which delays other waiters.
const (
	queuesAtOnce = 2
	queuesMore   = time.Second
)

// Queues returns how many queues a call for one of several keys should join. The number grows by
// one after queuesMore, and whenever the wait has doubled. So the call can acquire another key even
// if the first keys are held for hours.
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
	TakeOver             // write a grant that takes the key over from the observed holder
	Look                 // read the record after the pause
)

// Lately is the longest age of a read on which a waiter bases a takeover. If many waiters poll the
// key, the last read is often older, and another waiter has probably taken the key over since. So
// the waiter reads again.
const Lately = time.Second

// Next returns the next step of a waiter, and the pause before it. Pauses between reads grow with
// the age of the grant, as Pause describes. Once the holder is dead, a waiter that has read the
// record lately takes over without another read.
func Next(v View, now time.Duration, u float64) (Move, time.Duration) {
	switch {
	case !v.Known, v.Free:
		return Take, 0
	case v.Ours:
		return TakeOver, 0
	case now >= v.Dead && durations.Less(now, v.Looked) > Lately:
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

// DeadByVersion returns the monotonic time when a holder will be dead if it does not renew: since +
// lease. The parameter "since" is the monotonic time when the observing client first saw the
// current version of the record.
func DeadByVersion(since, lease time.Duration) time.Duration { return durations.Sum(since, lease) }

// DeadByClock returns the monotonic time, perhaps past, when the wall clock shows expires + skew +
// step. A holder that has not renewed is then dead. For skew, see protocol.Reading. The parameter
// "step" is the unit in which expiry times are stored, or zero if rounding does not matter.
func DeadByClock(expires time.Time, skew, step time.Duration, wall time.Time, now time.Duration) time.Duration {
	return durations.Sum(now, expires.Add(durations.Sum(skew, step)).Sub(wall))
}

// LooksDead reports whether a holder wrote its record at least a lease ago, by the holder's wall
// clock and this machine's. It returns false if written is zero. Wall clocks differ, so true only
// means that a client should observe the holder for a lease.
func LooksDead(written time.Time, lease time.Duration, wall time.Time) bool {
	return !written.IsZero() && wall.Sub(written) >= lease
}

// soon returns the upper limit of a waiter's mean pause, for a grant of the given age. So a waiter
// polls an old grant rarely, but its pause stays short compared with the age.
func soon(age time.Duration) time.Duration { return max(250*time.Millisecond, age/20) }

// Pause returns the time between two reads of a record, for a grant of the given age. Its mean is
// the shorter of age and soon(age), but at least low and at most high. Its random deviation is at
// most half the mean: more would delay notice of releases.
func Pause(age, low, high time.Duration, u float64) time.Duration {
	return durations.Scale(min(max(min(age, soon(age)), low), high), 0.5+u)
}

// headPause is the longest pause of the head of a queue, no matter how old the grant is. It can be
// short, because only one waiter of each queue reads so often.
const headPause = 250 * time.Millisecond

// pause returns the time until the next read of a queued waiter, for a grant of the given age.
// Behind the head, this time grows in proportion to the number of waiters ahead. It is not random,
// because queued waiters do not compete for the key.
func (p Position) pause(age time.Duration) time.Duration {
	const least = time.Millisecond
	roundTrip := max(p.RoundTrip, least)
	if p.Ahead == 0 {
		return min(max(age/10, roundTrip), headPause, p.Most)
	}
	return min(durations.Times(max(durations.Times(roundTrip, 2), age/4), int64(p.Ahead)), p.Most)
}

// firstBackoff is the longest pause before the first retry of a failed request.
const firstBackoff = 50 * time.Millisecond

// Backoff returns the pause before the next retry of a failed request. The parameter n is the
// number of earlier retries. The pause is an exponential backoff with full jitter (AWS Architecture
// Blog, "Exponential Backoff And Jitter"). The parameter u is a random number, uniform in [0,1).
func Backoff(n int, most time.Duration, u float64) time.Duration {
	return durations.Scale(min(durations.Times(firstBackoff, 1<<min(n, 62)), most), u)
}

// Constants for the pauses of a waiter that is not in the queue of the record. The function
// Front defines the front of a queue.
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

// Outside contains the facts from which a waiter outside the queue computes its pauses. Queue
// entries contain times of their clients' wall clocks. A wrong clock can make a waiter read less
// often or join later, but does not affect mutual exclusion.
type Outside struct {
	Waited    time.Duration
	RoundTrip time.Duration // estimated time of one request; see the function RoundTrip
	Ahead     time.Duration // time from the front of the queue to the time when this waiter began to wait; zero or negative if the waiter is overdue; see Front
	Moved     time.Duration // time by which the front has moved since the waiter's first read
	Seen      time.Duration // time from the waiter's first read to its last; 0 after one read
	Last      time.Duration // duration of the last pause
}

// Front returns the median of the known times when the queued waiters began to wait, or zero if
// none is known. A waiter without a place in the queue is overdue if it began to wait earlier. With
// the third quartile instead, more waiters would compete for the last entries: with 64 clients,
// each grant would cost three more reads.
func Front(began []time.Time) time.Time {
	known := slices.DeleteFunc(slices.Clone(began), time.Time.IsZero)
	if len(known) == 0 {
		return time.Time{}
	}
	slices.SortFunc(known, time.Time.Compare)
	return known[len(known)/2]
}

// pause returns the time until the waiter's next read: half of the estimated time until the front
// (see Front) reaches the waiter's own start. The estimate uses the mean speed of the front since
// the waiter's first read. After one read, the estimate assumes a speed of one second per second: a
// queue of constant length whose waiters wait equally long.
//
// If the queued waiters began at nearly the same time, the front does not move for long, and then
// jumps. While it has hardly moved, the pause is a tenth of the wait so far. There may be thousands
// of waiters outside the queue, so those with a long wait read rarely.
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
