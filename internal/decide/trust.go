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

// Past reports whether at least one of the two clocks has reached the deadline.
func (i Instant) Past(deadline Instant) bool { return i.Remaining(deadline) <= 0 }

// Remaining returns the time from i to the deadline, by the clock that leaves less time. It
// returns zero or a negative time if that clock has reached the deadline.
func (i Instant) Remaining(deadline Instant) time.Duration {
	return min(durations.Less(deadline.Mono, i.Mono), durations.Less(deadline.Boot, i.Boot))
}

// Since returns the time from start to i, by the clock that shows more time. Use Since for a
// period that DynamoDB measures with its own clock: that clock continues to run while this
// machine is suspended.
func (i Instant) Since(start Instant) time.Duration {
	return max(durations.Less(i.Mono, start.Mono), durations.Less(i.Boot, start.Boot))
}

// Earlier compares i and o clock by clock, and returns the earlier reading of each clock.
func (i Instant) Earlier(o Instant) Instant {
	return Instant{Mono: min(i.Mono, o.Mono), Boot: min(i.Boot, o.Boot)}
}

// TrustedUntil returns the time when a holder must stop trusting a grant or renewal: sent + lease −
// margin. The parameter sent is the time just before the client sent the request. Other clients
// begin to count the lease later: only after DynamoDB has written the record.
func TrustedUntil(sent Instant, lease, margin time.Duration) Instant {
	return sent.Add(durations.Less(lease, margin))
}

// Bounds of the result of RenewalDeadline.
const (
	renewalAtLeast = 250 * time.Millisecond
	renewalAtMost  = 2 * time.Second
)

// RenewalDeadline returns how long the client waits for the answer to one renewal. The parameter
// left is the time for which the lock is still trusted. The result is a quarter of left, so that
// there is time for more renewals if this request is lost. But it is at least renewalAtLeast, at
// most renewalAtMost, and never more than left.
func RenewalDeadline(left time.Duration) time.Duration {
	return min(max(left/4, renewalAtLeast), renewalAtMost, left)
}

// FirstRenewal returns the pause between a grant and its first renewal. The parameter "period" is
// the time between renewals, "left" is the time for which the lock is still trusted, and "u" is a
// random number, uniform in [0,1). The pause is a random time from half a period to a whole period,
// so that locks granted together are not renewed together. If the reply to the grant came late,
// left/3 may be less than the period. Then left/3 replaces the period.
func FirstRenewal(period, left time.Duration, u float64) time.Duration {
	return durations.Scale(min(period, max(left, 0)/3), 0.5+0.5*u)
}

// FirstRenewalOfHandOver returns the pause before the first renewal of a key that was handed over
// with the given lease. The pause begins with the read that shows the hand-over. It is a tenth of
// the lease, and at most a third of "left", the time for which the lock is still trusted. There is
// a pause because a client that soon releases the key needs no renewal. The pause is short so that,
// if DynamoDB throttles the renewal, most of the lease remains for retries.
func FirstRenewalOfHandOver(lease, left time.Duration) time.Duration {
	return max(min(lease/10, left/3), 1)
}

// NextRenewal returns the pause between the answer to a renewal and the next renewal. The parameter
// took is the time from the request to the answer. The pause is usually period minus took, so that
// slow answers do not delay the next renewal. It is instead a random part of the period if took is
// more than half of the period, or if displaced is true. The parameter displaced is true if the
// renewal was not sent at its regular time. The random pauses spread out renewals that were sent
// together. The pause is at most a third of left, the time for which the lock is still trusted.
func NextRenewal(period, took, left time.Duration, displaced bool, u float64) time.Duration {
	pause := durations.Less(period, took)
	if displaced || pause < period/2 {
		pause = durations.Scale(period, u)
	}
	return min(pause, max(left, 0)/3)
}

// RenewalRetry returns the pause after a failed renewal. The parameter n is the number of earlier
// renewals that failed in a row. The parameter "left" is the time for which the lock is still
// trusted. If left is positive, the pause is at most left/2, or 50 ms if that is longer. If left is
// 0 or less, it does not limit the pause: the lock is no longer trusted, but the client still holds
// it through an outage (HoldThroughOutage of layout.AWSLabs).
func RenewalRetry(n int, period, left time.Duration, u float64) time.Duration {
	const first = 50 * time.Millisecond
	most := min(period/4, 5*time.Second)
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

// Add returns d plus the demand of one more lease. The lease is renewed once in each period,
// and remains trusted for the given time after each renewal.
func (d Demand) Add(period, trusted time.Duration) Demand {
	return Demand{Usual: d.Usual + perSecond(period), Least: d.Least + perSecond(trusted)}
}

// Remove returns d minus the demand of a lease that Add has added with the same arguments.
func (d Demand) Remove(period, trusted time.Duration) Demand {
	return Demand{Usual: max(d.Usual-perSecond(period), 0), Least: max(d.Least-perSecond(trusted), 0)}
}

func perSecond(period time.Duration) float64 { return 1 / max(period, time.Millisecond).Seconds() }

// Pace is a limit on the number of renewals per second that a client sends to a table that
// throttles them. It follows additive increase and multiplicative decrease (Chiu and Jain,
// "Analysis of the Increase and Decrease Algorithms", 1989). The zero Pace sets no limit.
type Pace struct {
	PerSecond float64
	lowered   time.Duration // monotonic time when Throttled last lowered the pace
	raised    time.Duration // monotonic time when Succeeded last raised the pace, or Throttled lowered it
}

// Constants that determine how a Pace changes. A table often throttles several renewals that were
// sent together, and these must lower the pace only once. So a throttled renewal lowers the pace
// only if it was sent at least paceHolds after the pace was last lowered. The pace has two lower
// bounds: paceLeast renewals per second, and paceReserve times the rate that keeps every lease
// trusted. paceReserve is above one because some of the renewals are throttled.
const (
	paceCut     = 0.8
	paceHolds   = 250 * time.Millisecond
	paceGrowth  = 0.05 // growth of the pace per second, as a fraction of the usual demand
	paceReserve = 1.5
	paceLeast   = 5.0
	paceFree    = 1.5 // Succeeded removes the limit when the pace reaches this multiple of the usual demand
)

// Throttled returns the pace after a renewal that DynamoDB has throttled. The parameter sent
// is the time when the client sent the renewal.
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

// StillToName returns the versions that the condition of the holder's next write must name, oldest
// first. DynamoDB may apply unanswered attempts before that write, so the condition must accept the
// version of each of them (see package attempts). The parameter "tried" contains the versions of
// the unanswered attempts of one grant, oldest first. The parameter "shown" is the version that the
// record had when the client last read it.
//
// If "tried" contains the version shown, the result consists of that version and all later versions
// in "tried", because DynamoDB may still apply the later attempts. It can no longer apply the
// earlier attempts: their conditions name versions that the record will never have again. If
// "tried" does not contain the version shown, DynamoDB may still apply all attempts.
//
// The parameter "most" is the largest number of versions in the result. If there are more,
// StillToName omits the oldest versions, but never the version shown. This is safe. If DynamoDB
// applies an omitted attempt after all, the condition of the holder's next write does not name the
// record's version. DynamoDB then rejects the write, and no key is granted twice.
func StillToName(tried []string, shown string, most int) []string {
	first := slices.Index(tried, shown)
	if first < 0 {
		return slices.Clone(tried[max(0, len(tried)-most):])
	}
	later := tried[first+1:]
	return append([]string{shown}, later[max(0, len(later)-most+1):]...)
}
