package decide

import "time"

// View is what a waiter knows of the record it wants.
type View struct {
	Known   bool          // a reply has shown the record's state since the last grant was refused
	Free    bool          // absent or released
	Ours    bool          // shows an unsettled attempt of this client, which nobody holds
	Grant   time.Duration // monotonic time at which the grant was first seen
	Dead    time.Duration // monotonic time from which the holder is dead, if the record stays as it is
	PollMin time.Duration
	PollMax time.Duration
}

// Move is what a waiter does next.
type Move int

// The moves.
const (
	Take     Move = iota // write a grant: the key is free, or nothing is known
	TakeOver             // write a grant that also replaces the version watched
	Look                 // read the record, after the pause
)

// Next says what a waiter does next and after which pause; u is uniform in
// [0,1). Pauses grow with the age of the grant: a lock that changes hands
// often is followed closely, one held for long cheaply. At the holder's death
// the look is the conditional takeover itself.
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
	pause := Pause(now-v.Grant, v.PollMin, v.PollMax, u)
	if pause >= v.Dead-now {
		return TakeOver, v.Dead - now
	}
	return Look, pause
}

// DeadByVersion is when the holder of a version is dead that was first seen at
// since: once it has stood still for the record's own lease by the observer's
// monotonic clock. No wall clock is compared.
func DeadByVersion(since, lease time.Duration) time.Duration { return saturate(since, lease) }

// DeadByClock is when the holder of a record is dead that says when it expires:
// once the skew and one step of that time have passed by this machine's wall
// clock, which reads wall at the monotonic time now.
func DeadByClock(expires time.Time, skew, step time.Duration, wall time.Time, now time.Duration) time.Duration {
	return saturate(now, max(expires.Add(skew+step).Sub(wall), 0))
}

// Pause is the time between two looks at a grant of that age: uniform between
// nothing and twice the age, the age taken as at least low and at most high.
func Pause(age, low, high time.Duration, u float64) time.Duration {
	return time.Duration(2 * u * float64(min(max(age, low), high)))
}

// Backoff is the pause before the nth repetition of a request that failed,
// n from 0: full jitter under a ceiling that doubles (AWS Architecture Blog,
// "Exponential Backoff And Jitter").
func Backoff(n int, first, most time.Duration, u float64) time.Duration {
	ceiling := most
	if n < 20 && first<<n < most {
		ceiling = first << n
	}
	return time.Duration(u * float64(ceiling))
}
