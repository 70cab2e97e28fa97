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

// RoundTrip returns the new estimate of the round trip of a request, after a request that took the
// given time. The parameter "known" is the estimate before that request. A fast request changes the
// estimate more than a slow request does. A request that took more than twice the estimate counts
// as twice the estimate.
//
// A waiter behind the head of a queue pauses for multiples of the round trip. If one slow request
// made these pauses long, a waiter to which the key was handed would learn of its grant late, and
// the key would be idle until then. Meanwhile, the grant would grow older, so that the other
// waiters would also pause longer: pauses grow with the age of the grant.
func RoundTrip(known, took time.Duration) time.Duration {
	if took < known {
		return durations.Less(known, durations.Less(known, took)/4)
	}
	return durations.Sum(known, durations.Less(min(took, durations.Times(known, 2)), known)/8)
}

// LongestQueuePause is the longest pause of a waiter in the queue of a record.
const LongestQueuePause = time.Second

// LetOthers returns how long a client that was asked to step down lets the waiters of other clients
// go first. In that time each of them reads the record. pollMax is the longest mean pause between
// two of their reads.
func LetOthers(pollMax time.Duration) time.Duration {
	return durations.Times(max(pollMax, LongestQueuePause), 2)
}

// Bounds of the result of HandOverLease.
const (
	shortestHandOver = 3 * time.Second
	longestHandOver  = 10 * time.Second
)

// HandOverLease returns the lease with which a client hands a key to a waiter of another client.
// The parameter "lease" is the first client's own lease. If it is shorter than 3 s, the result is
// the whole lease. Otherwise, the result is half of it, but at least 3 s and at most 10 s.
//
// The hand-over lease is short because a dead waiter blocks the key for the whole hand-over lease.
// It has a lower limit because a live waiter loses the key if its renewals are throttled for the
// whole hand-over lease.
func HandOverLease(lease time.Duration) time.Duration {
	return min(max(lease/2, shortestHandOver), longestHandOver, lease)
}

// suspensions is the time for which a client suspends a queue, as a multiple of the
// client's lease.
const suspensions = 6

// SuspendedUntil returns the time until which a client suspends the queue of a record. A client
// suspends the queue after it has taken the key over from a dead waiter to which the key had been
// handed. The other waiters in the queue may be dead, too, and each dead waiter would block the key
// for a hand-over lease. While the queue is suspended, no client hands the key to its waiters. wall
// is the time on the client's wall clock, and lease is the client's lease.
func SuspendedUntil(wall time.Time, lease time.Duration) time.Time {
	return wall.Add(durations.Times(lease, suspensions))
}

// IsSuspended reports whether a queue is still suspended. The parameter end is the time up to
// which a client has suspended the queue. wall is the time on the wall clock of the client
// that calls IsSuspended, and lease is the lease of that client. If end is later than
// SuspendedUntil(wall, lease), the value of end comes from a wrong clock, and IsSuspended
// returns false.
func IsSuspended(end, wall time.Time, lease time.Duration) bool {
	return wall.Before(end) && !end.After(SuspendedUntil(wall, lease))
}

// leastLongest is the smallest result of LongestPauseInQueue. It matters only if a record contains
// a shorter lease than a client can configure. A waiter for the key of such a record may pause for
// more than a quarter of that lease.
const leastLongest = 25 * time.Millisecond

// LongestPauseInQueue returns the longest pause of a waiter in the queue of a record. The parameter
// own is the lease of the waiter, and held is the lease of the holder. The holder may hand the key
// to the waiter during the pause. How long the waiter may trust this grant depends on the hand-over
// lease or on the waiter's own lease, whichever is shorter. The waiter learns of the grant after
// the pause, and most of the shorter lease must then be left. So the pause is at most a quarter of
// the shorter lease. It is never longer than LongestQueuePause.
func LongestPauseInQueue(own, held time.Duration) time.Duration {
	return max(min(LongestQueuePause, min(own, HandOverLease(held))/4), leastLongest)
}

// Limits on the joins that a call may send; a join is a write that adds an entry to a queue.
// If a record is damaged, or if its queue is erased again and again, a waiter never finds its
// entry in the queue. Without limits, the call would send joins forever.
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

// queuesAtOnce is the number of queues that a call joins at first if it is to acquire one of
// several keys, each with its own queue. The call joins one more queue after a wait of queuesMore,
// and one more whenever its wait has doubled. The number is small because two holders may hand keys
// to the call at the same time. The call must then release the second key, which delays other
// waiters.
const (
	queuesAtOnce = 2
	queuesMore   = time.Second
)

// Queues returns how many queues in records a call should join if it is to acquire one of several
// keys. The parameter waited is how long the call has waited. The result is two for a wait of less
// than a second, three from then on, and one more each time the wait has doubled. Because the number
// grows, the call can acquire another key even if the keys of the first queues are held for hours.
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

// lately is the longest age of a read on which a waiter bases a takeover. If the waiter's last read
// is older, as is usual if thousands of waiters poll the key, the waiter first reads again: another
// waiter has probably taken the key over already, and a takeover would be rejected.
const lately = time.Second

// Next returns the next step of a waiter, and the pause before it. now is the monotonic
// time, and u is a random number, uniform in [0,1). Pauses between reads grow with the age
// of the grant, as Pause describes. Once the holder is dead, a waiter that has read the
// record recently sends the takeover without another read.
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

// DeadByVersion returns the monotonic time when a holder will be dead if it does not renew:
// since + lease. since is the time when the observing client first saw the current version of
// the record, by that client's monotonic clock. The result does not depend on any wall clock.
func DeadByVersion(since, lease time.Duration) time.Duration { return durations.Sum(since, lease) }

// DeadByClock returns the monotonic time when a holder will be dead if it does not renew, for
// a record with the given expiry time. The result may be in the past. The holder is dead once
// this machine's wall clock shows expires + skew + step. skew is the MaxSkew that applies (see
// protocol.Reading). step is the unit in which the record stores the expiry time, or zero if
// rounding does not matter. wall and now are the current times on the wall clock and the
// monotonic clock.
func DeadByClock(expires time.Time, skew, step time.Duration, wall time.Time, now time.Duration) time.Duration {
	return durations.Sum(now, expires.Add(durations.Sum(skew, step)).Sub(wall))
}

// LooksDead reports whether a holder appears dead: by wall clocks, it wrote its record at
// least a lease ago. written is the time of that write, by the holder's clock, and wall is the
// time on this machine's clock. If written is zero, the time is unknown, and LooksDead returns
// false. Wall clocks differ, so true does not prove that the holder is dead. It only means
// that a client should observe the holder for the length of a lease.
func LooksDead(written time.Time, lease time.Duration, wall time.Time) bool {
	return !written.IsZero() && wall.Sub(written) >= lease
}

// soon returns the upper limit of a waiter's mean pause, for a grant of the given age: a quarter of
// a second up to an age of five seconds, and a twentieth of the age from then on. So a waiter
// rarely polls the record of an old grant, but its pause stays short compared with the age.
func soon(age time.Duration) time.Duration { return max(250*time.Millisecond, age/20) }

// Pause returns a random time between two reads of a record whose grant has the given age. The mean
// of this time is the age or soon(age), whichever is shorter, but at least low and at most high.
// Pause multiplies the mean by a random factor from 0.5 to 1.5, so that two waiters do not always
// read at the same time. The random number u, uniform in [0,1), determines the factor. If the
// factors varied more, a waiter would notice a release later on average, with the same number of
// reads. If a key is held for five seconds or more, a waiter notices the release late by at most a
// tenth of the time for which the key was held.
func Pause(age, low, high time.Duration, u float64) time.Duration {
	return durations.Scale(min(max(min(age, soon(age)), low), high), 0.5+u)
}

// headPause is the longest pause of the head of a queue, no matter how old the grant is.
// headPause can be short, because only one waiter of each queue reads so often. If the holder
// releases the key during the pause, the key is idle for half of the pause on average.
const headPause = 250 * time.Millisecond

// pause returns the time until the next read of a waiter in a queue. age is the age of the
// current grant. The head of the queue pauses for a tenth of the age, and for headPause at
// most. A waiter behind the head pauses longer, in proportion to the number of waiters
// ahead. Pauses are not random, as waiters in a queue do not compete for the key.
func (p Position) pause(age time.Duration) time.Duration {
	const least = time.Millisecond
	roundTrip := max(p.RoundTrip, least)
	if p.Ahead == 0 {
		return min(max(age/10, roundTrip), headPause, p.Most)
	}
	return min(durations.Times(max(durations.Times(roundTrip, 2), age/4), int64(p.Ahead)), p.Most)
}

// Backoff returns the pause before the next retry of a failed request. n is the number of
// earlier retries. The pause is an exponential backoff with full jitter (AWS Architecture
// Blog, "Exponential Backoff And Jitter"). u is a random number, uniform in [0,1).
func Backoff(n int, first, most time.Duration, u float64) time.Duration {
	return durations.Scale(min(durations.Times(first, 1<<min(n, 62)), most), u)
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

// Outside contains the facts from which a waiter that is not in the queue of a record computes
// its pauses. Each entry of the queue contains the time when its waiter began to wait, by the
// clock of that waiter's client. So a wrong clock can make a waiter read less often, or join
// the queue later. Mutual exclusion does not depend on these clocks.
type Outside struct {
	Waited    time.Duration
	RoundTrip time.Duration // estimated time of one request; see the function RoundTrip
	Ahead     time.Duration // time from the front of the queue to the time when this waiter began to wait; zero or negative if the waiter is overdue; see Front
	Moved     time.Duration // time by which the front has moved since the waiter's first read
	Seen      time.Duration // time from the waiter's first read to its last; 0 after one read
	Last      time.Duration // duration of the last pause
}

// Front returns a time, the front of a queue: the median of the times when the queue's waiters
// began to wait. The slice "began" contains these times. Front ignores zero times, which are
// unknown, and returns the zero time if all times are unknown. A waiter outside the queue is
// overdue if it began to wait before the front.
//
// With a later front, such as the third quartile, more waiters would be overdue, and would compete
// for the last free entries of the queue. With 64 clients, each grant would then cost three more
// reads, and waits would be longer.
func Front(began []time.Time) time.Time {
	known := slices.DeleteFunc(slices.Clone(began), time.Time.IsZero)
	if len(known) == 0 {
		return time.Time{}
	}
	slices.SortFunc(known, time.Time.Compare)
	return known[len(known)/2]
}

// pause returns the time until the waiter's next read. The parameter "age" is the age of the
// current grant, and u is a random number, uniform in [0,1). When the front, which is a time (see
// Front), reaches the time when the waiter began to wait, the waiter is overdue. The pause is half
// of the estimated time until then. The estimate assumes that the front will move as fast as since
// the waiter's first read. After only one read, it assumes one second per second, which is the
// speed if the length of the queue is constant and all its waiters wait equally long.
//
// If all waiters in the queue began to wait at nearly the same time, the front stands still, and
// later jumps. While the front has hardly moved, there is no estimate: the waiter pauses for a
// tenth of the time for which it has waited. So a waiter reads rarely if it began to wait long
// after the front, or has waited for a long time. There may be thousands of such waiters.
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
