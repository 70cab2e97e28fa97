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
// margin. The parameter "sent" is the time just before the client sends the request. Other clients
// count the lease only after DynamoDB has written the record.
func TrustedUntil(sent Instant, lease, margin time.Duration) Instant {
	return sent.Add(durations.Less(lease, margin))
}

// Bounds of the result of RenewalDeadline.
const (
	renewalAtLeast = 250 * time.Millisecond
	renewalAtMost  = 2 * time.Second
)

// RenewalDeadline returns how long the client waits for the answer to one renewal. It is about a
// quarter of the trusted time left, so that there is time for more renewals if this request is
// lost. It is never more than left.
func RenewalDeadline(left time.Duration) time.Duration {
	return min(max(left/4, renewalAtLeast), renewalAtMost, left)
}

// FirstRenewal returns the pause between a grant and its first renewal: half a period to a whole
// one. It is random, so that locks granted together are not renewed together. If the reply to the
// grant came late, a third of the trusted time left may replace the period.
func FirstRenewal(period, left time.Duration, u float64) time.Duration {
	return durations.Scale(min(period, max(left, 0)/3), 0.5+0.5*u)
}

// FirstRenewalOfHandOver returns the pause between the read that shows a hand-over and the first
// renewal. There is a pause because a client that soon releases the key needs no renewal. It is
// short so that most of the lease remains for retries if DynamoDB throttles the renewal.
func FirstRenewalOfHandOver(lease, left time.Duration) time.Duration {
	return max(min(lease/10, left/3), 1)
}

// NextRenewal returns the pause after a renewal whose answer took the given time. The pause is
// usually period − took, and at most a third of the trusted time left. After a slow answer or a
// displaced renewal (not sent at its regular time), it is random, to spread out renewals sent
// together.
func NextRenewal(period, took, left time.Duration, displaced bool, u float64) time.Duration {
	pause := durations.Less(period, took)
	if displaced || pause < period/2 {
		pause = durations.Scale(period, u)
	}
	return min(pause, max(left, 0)/3)
}

// RenewalRetry returns the pause after a failed renewal, when n earlier renewals in a row have
// failed. If left is positive, it limits the pause. Otherwise the client holds the lock through an
// outage (HoldThroughOutage of layout.AWSLabs).
func RenewalRetry(n int, period, left time.Duration, u float64) time.Duration {
	most := min(period/4, 5*time.Second)
	if left > 0 {
		most = min(most, max(left/2, firstBackoff))
	}
	return Backoff(n, most, u)
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

// Constants that determine how a Pace changes. Several renewals are often throttled together, so
// those sent within paceHolds after a cut do not lower the pace again. The lower bounds are
// paceLeast renewals per second, and paceReserve times the rate that keeps every lease trusted.
const (
	paceCut     = 0.8
	paceHolds   = 250 * time.Millisecond
	paceGrowth  = 0.05 // growth of the pace per second, as a fraction of the usual demand
	paceReserve = 1.5  // above one because some of the renewals are throttled
	paceLeast   = 5.0
	paceFree    = 1.5 // Succeeded removes the limit when the pace reaches this multiple of the usual demand
)

// Throttled returns the pace after a renewal that DynamoDB has throttled. The parameter "sent" is
// the time when the client sent the renewal.
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

// StillToName returns the versions that the condition of the holder's next write must accept,
// oldest first: the record may have any of them by then. The parameter "tried" contains the
// versions of the unanswered attempts of one grant, oldest first. The parameter "shown" is the
// version that the client last read.
//
// DynamoDB can no longer apply the attempts before shown: their conditions name versions that the
// record will never have again. If tried does not contain shown, DynamoDB may still apply all
// attempts.
//
// If there are more versions than the parameter "most", StillToName omits the oldest, but never
// shown. This is safe: if DynamoDB applies an omitted attempt after all, it rejects the holder's
// next write, and no key is granted twice.
func StillToName(tried []string, shown string, most int) []string {
	first := slices.Index(tried, shown)
	if first < 0 {
		return slices.Clone(tried[max(0, len(tried)-most):])
	}
	later := tried[first+1:]
	return append([]string{shown}, later[max(0, len(later)-most+1):]...)
}
