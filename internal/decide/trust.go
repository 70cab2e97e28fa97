package decide

import (
	"math"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// Instant is a reading of two clocks at the same time. Mono is CLOCK_MONOTONIC, which stops
// while the machine is suspended. Boot is CLOCK_BOOTTIME, which does not stop. On systems
// other than Linux, Boot is the wall clock.
type Instant struct{ Mono, Boot time.Duration }

// Never is an Instant that is later than every reading of the clocks.
var Never = Instant{Mono: math.MaxInt64, Boot: math.MaxInt64}

// Add returns the Instant that is later than i by d on both clocks.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{Mono: durations.Sum(i.Mono, d), Boot: durations.Sum(i.Boot, d)}
}

// Past reports whether at least one of the two clocks has reached until.
func (i Instant) Past(until Instant) bool { return i.Remaining(until) <= 0 }

// Remaining returns the time from i to until, by the clock that leaves less time. It
// returns zero or a negative time if that clock has reached until.
func (i Instant) Remaining(until Instant) time.Duration {
	return min(durations.Less(until.Mono, i.Mono), durations.Less(until.Boot, i.Boot))
}

// Since returns the time from then to i, by the clock that shows more time. Use Since for a
// period that DynamoDB measures with its own clock: that clock continues to run while this
// machine is suspended.
func (i Instant) Since(then Instant) time.Duration {
	return max(durations.Less(i.Mono, then.Mono), durations.Less(i.Boot, then.Boot))
}

// Earlier returns an Instant with the earlier reading of i and o on each clock.
func (i Instant) Earlier(o Instant) Instant {
	return Instant{Mono: min(i.Mono, o.Mono), Boot: min(i.Boot, o.Boot)}
}

// TrustedUntil returns the time when a holder must stop trusting a grant or renewal: sent +
// lease − margin. sent is a time before the client sent the request. DynamoDB cannot have
// written the record before that time. So the holder begins to count the lease earlier than
// every other client does.
func TrustedUntil(sent Instant, lease, margin time.Duration) Instant {
	return sent.Add(durations.Less(lease, margin))
}

// Bounds of the result of RenewalDeadline.
const (
	renewalAtLeast = 250 * time.Millisecond
	renewalAtMost  = 2 * time.Second
)

// RenewalDeadline returns how long the client waits for the answer to one renewal. left is
// the time for which the lock is still trusted. The result is a quarter of left, so that
// there is time for more renewals if this request is lost. It is limited to the range from
// renewalAtLeast to renewalAtMost, and is never longer than left.
func RenewalDeadline(left time.Duration) time.Duration {
	return min(max(left/4, renewalAtLeast), renewalAtMost, left)
}

// FirstRenewal returns the pause between a grant and its first renewal. every is the renewal
// period, left is the time for which the lock is still trusted, and u is a random number,
// uniform in [0,1). The pause is a random time from half a period to a whole period, so that
// locks granted together are not renewed together. The pause is at most a third of left. That
// limit matters if the reply to the grant came late.
func FirstRenewal(every, left time.Duration, u float64) time.Duration {
	return durations.Scale(min(every, max(left, 0)/3), 0.5+0.5*u)
}

// FirstRenewalOfHandOver returns the pause before the first renewal of a key that was
// handed over with the given lease. left is the time for which the lock is still trusted.
// The pause begins with the read that shows the hand-over. It is a tenth of the lease, and
// at most a third of left. A client that releases the key during the pause needs no
// renewal. The pause is short, so that almost the whole lease is left if the renewal is
// throttled.
func FirstRenewalOfHandOver(lease, left time.Duration) time.Duration {
	return max(min(lease/10, left/3), 1)
}

// NextRenewal returns the pause between the answer to a renewal and the next renewal. took is
// the time from the request of the renewal to its answer. The period begins with the request,
// so that slow answers do not delay the next renewal. If displaced is true, the renewal was
// not sent at its regular time. In that case the pause is a random part of the period, so that
// renewals that were sent together are spread out again. left is the time for which the lock
// is still trusted.
func NextRenewal(every, took, left time.Duration, displaced bool, u float64) time.Duration {
	pause := durations.Less(every, took)
	if displaced || pause < every/2 {
		pause = durations.Scale(every, u)
	}
	return min(pause, max(left, 0)/3)
}

// RenewalRetry returns the pause after the nth failed renewal in a row, n from 0. left is
// the time for which the lock is still trusted. The pause is at most half of left, or 50 ms
// if that is longer. If left is 0 or less, the lock is no longer trusted, and the client
// holds it through an outage (HoldThroughOutage of layout.AWSLabs). In that case, left does
// not limit the pause.
func RenewalRetry(n int, every, left time.Duration, u float64) time.Duration {
	const first = 50 * time.Millisecond
	most := min(every/4, 5*time.Second)
	if left > 0 {
		most = min(most, max(left/2, first))
	}
	return Backoff(n, first, most, u)
}

// Demand is the number of renewals per second that the leases of a client need.
type Demand struct {
	Usual float64 // renewals per second if each lease is renewed once per period
	Least float64 // renewals per second if each lease is renewed once in the time for which it is trusted
}

// Add returns d with the demand of one more lease. The lease is renewed once in each period
// every, and is trusted for the duration trust after each renewal.
func (d Demand) Add(every, trust time.Duration) Demand {
	return Demand{Usual: d.Usual + perSecond(every), Least: d.Least + perSecond(trust)}
}

// Remove returns d without the demand of a lease that Add has added with the same
// arguments.
func (d Demand) Remove(every, trust time.Duration) Demand {
	return Demand{Usual: max(d.Usual-perSecond(every), 0), Least: max(d.Least-perSecond(trust), 0)}
}

func perSecond(every time.Duration) float64 { return 1 / max(every, time.Millisecond).Seconds() }

// Pace is a limit on the number of renewals per second that a client sends to a table that
// throttles them. It follows additive increase and multiplicative decrease (Chiu and Jain,
// "Analysis of the Increase and Decrease Algorithms", 1989). The zero Pace sets no limit.
type Pace struct {
	PerSecond float64
	lowered   time.Duration // monotonic time when Throttled last lowered the pace
	raised    time.Duration // monotonic time when Succeeded last raised the pace, or Throttled lowered it
}

// Constants that determine how a Pace changes. Renewals that are throttled within paceHolds
// lower the pace only once, because a table throttles all requests that arrive at the same
// time. The pace is at least paceLeast renewals per second, and at least paceReserve times the
// rate that keeps every lease trusted. paceReserve is above one because some of the renewals
// are throttled.
const (
	paceCut     = 0.8
	paceHolds   = 250 * time.Millisecond
	paceGrowth  = 0.05 // growth of the pace per second, as a fraction of the usual demand
	paceReserve = 1.5
	paceLeast   = 5.0
	paceFree    = 1.5 // Succeeded removes the limit when the pace reaches this multiple of the usual demand
)

// Throttled returns the pace after a renewal that DynamoDB has throttled. sent is the time
// when the client sent the renewal.
func (p Pace) Throttled(d Demand, sent, now time.Duration) Pace {
	switch {
	case p.PerSecond == 0:
		p.PerSecond = d.Usual
	case sent < durations.Sum(p.lowered, paceHolds):
		return p
	}
	return Pace{PerSecond: max(p.PerSecond*paceCut, d.Least*paceReserve, paceLeast), lowered: now, raised: now}
}

// Succeeded returns the pace after a renewal that DynamoDB has applied.
func (p Pace) Succeeded(d Demand, now time.Duration) Pace {
	if p.PerSecond == 0 {
		return p
	}
	p.PerSecond += paceGrowth * d.Usual * min(durations.Less(now, p.raised), time.Second).Seconds()
	p.raised = now
	if p.PerSecond >= max(paceFree*d.Usual, paceLeast) {
		return Pace{}
	}
	return p
}

// Gap returns the time between two renewals at pace p. It returns 0 if p sets no limit.
func (p Pace) Gap() time.Duration {
	if p.PerSecond == 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / p.PerSecond)
}

// StillToName returns the versions that the condition of the holder's next write must name,
// oldest first. tried contains the versions of attempts of one grant that have had no
// answer, oldest first. shown is the version in the record when the client last read it.
//
// If tried contains shown, the result is shown and all later versions, whose attempts DynamoDB
// may still apply. DynamoDB can no longer apply the attempts before shown, since their
// conditions name versions that never come back. If tried does not contain shown, DynamoDB may
// still apply all attempts.
//
// most is the largest number of versions in the result. If there are more, StillToName
// omits the oldest versions, but never shown. That is safe: if DynamoDB applies an omitted
// attempt after all, it rejects the next write, whose condition does not name that attempt.
// No key is granted twice.
//
// Package attempts explains why a condition names attempts that have had no answer.
func StillToName(tried []string, shown string, most int) []string {
	first := slices.Index(tried, shown)
	if first < 0 {
		return slices.Clone(tried[max(0, len(tried)-most):])
	}
	later := tried[first+1:]
	return append([]string{shown}, later[max(0, len(later)-most+1):]...)
}
