package decide

import "time"

// View is what a waiter knows about the record of the key that it wants.
type View struct {
	Known   bool          // an answer has shown the record
	Free    bool          // the record is absent or released
	Ours    bool          // the record shows an attempt of this client that nobody holds
	Grant   time.Duration // when the current grant was first seen, in monotonic time
	Dead    time.Duration // when the holder is dead if the record does not change, in monotonic time
	PollMin time.Duration
	PollMax time.Duration
	Line    *Place // in the record's line; nil: none, and pauses are random
}

// Place is where a waiter stands in the line of a record, or would stand if it had room.
type Place struct {
	Ahead     int           // how many come before it
	RoundTrip time.Duration // as measured last
	Most      time.Duration // the longest pause; see LongestLinePause
}

// Whoever stands in line may be handed the key unseen, under a lease of HandedLease: it
// must look often enough to learn of that while most of the lease is left.
const (
	HandedLease      = 3 * time.Second
	LongestLinePause = time.Second
)

// Move is what a waiter does next.
type Move int

// Values of Move.
const (
	Take     Move = iota // write a grant: the key is free, or nothing is known
	TakeOver             // write a grant that also replaces the observed version
	Look                 // read the record, after the pause
)

// Next returns what a waiter does next, and the pause before it; u is uniform in
// [0,1). Pauses grow with the age of the grant, as Pause says. Once the holder is dead,
// the waiter does not read first: it writes the conditional takeover.
func Next(v View, now time.Duration, u float64) (Move, time.Duration) {
	switch {
	case !v.Known, v.Free:
		return Take, 0
	case v.Ours:
		return TakeOver, 0
	}
	if now >= v.Dead {
		return TakeOver, 0
	}
	pause := Pause(Less(now, v.Grant), v.PollMin, v.PollMax, u)
	if v.Line != nil {
		pause = v.Line.pause(Less(now, v.Grant))
	}
	if left := Less(v.Dead, now); pause >= left {
		return TakeOver, left
	}
	return Look, pause
}

// DeadByVersion returns when a holder is dead whose version was first seen at
// since: since + lease, by the observer's monotonic clock. Wall clocks play no
// part.
func DeadByVersion(since, lease time.Duration) time.Duration { return Sum(since, lease) }

// DeadByClock returns when a holder is dead whose record has an expiry time, or has
// been since, in monotonic time: expires + skew + step, by this machine's wall clock.
// That clock reads wall at the monotonic time now.
func DeadByClock(expires time.Time, skew, step time.Duration, wall time.Time, now time.Duration) time.Duration {
	return Sum(now, expires.Add(Sum(skew, step)).Sub(wall))
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
// high. Pauses that differ keep waiters apart; those that differ more come later on average
// for as many reads. Nobody comes late by more than a tenth of a hold of five seconds, or of
// a longer one.
func Pause(age, low, high time.Duration, u float64) time.Duration {
	return Scale(min(max(min(age, soon(age)), low), high), 0.5+u)
}

// pause returns the time between two reads of a grant of that age. The head reads as
// often as a tenth of the age, or what is soon for it: it waits that much longer at most
// than who holds the key works. Those behind it have time; nobody's pause is random, as
// nobody races.
func (p Place) pause(age time.Duration) time.Duration {
	const least = time.Millisecond
	roundTrip := max(p.RoundTrip, least)
	if p.Ahead == 0 {
		return min(max(age/10, roundTrip), soon(age), p.Most)
	}
	return min(Times(max(Times(roundTrip, 2), age/4), int64(p.Ahead)), p.Most)
}

// Backoff returns the pause before the nth retry of a failed request, n from 0:
// exponential backoff with full jitter (AWS Architecture Blog, "Exponential
// Backoff And Jitter").
func Backoff(n int, first, most time.Duration, u float64) time.Duration {
	ceiling := most
	if n < 20 {
		ceiling = min(Times(first, 1<<n), most)
	}
	return Scale(ceiling, u)
}
