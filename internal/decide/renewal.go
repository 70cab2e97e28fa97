package decide

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// Bounds of the result of RenewalDeadline.
const (
	renewalAtLeast = 250 * time.Millisecond
	renewalAtMost  = 2 * time.Second
)

// RenewalDeadline returns how long one attempt to renew may take: a quarter of the time for
// which the lock is still trusted. So there is time for more attempts if this one is lost.
// Package internal/lease explains what the answer to an attempt means.
func RenewalDeadline(left time.Duration) time.Duration {
	return min(max(left/4, renewalAtLeast), renewalAtMost, left)
}

// FirstRenewal returns the pause between a grant and its first renewal; u is uniform in
// [0,1). The pause is a random time in the second half of the period, so that locks granted
// together are not renewed together. The pause is also at most a third of the time for
// which the lock is still trusted. That time is shorter if the grant was slow.
func FirstRenewal(every, left time.Duration, u float64) time.Duration {
	return durations.Scale(min(every, max(left, 0)/3), 0.5+0.5*u)
}

// FirstRenewalOfHandOver returns the pause before the first renewal of a key that was
// handed over with the given lease. The pause counts from the read that shows the
// hand-over. It is a tenth of the lease, and at most a third of the trust left. A section
// shorter than the pause needs no renewal. In a longer section, the renewal is early: if it
// is throttled, almost the whole hand-over lease is left.
func FirstRenewalOfHandOver(lease, left time.Duration) time.Duration {
	return max(min(lease/10, left/3), 1)
}

// NextRenewal returns the pause between the answer to a renewal and the next renewal. took
// is how long the renewal took. The period counts from when the renewal was sent, so that
// slow answers do not shift renewals. displaced reports whether the renewal was early or
// late. If so, the next renewal comes at a random time of the period, so that bunched
// renewals spread out again.
func NextRenewal(every, took, left time.Duration, displaced bool, u float64) time.Duration {
	pause := durations.Less(every, took)
	if displaced || pause < every/2 {
		pause = durations.Scale(every, u)
	}
	return min(pause, max(left, 0)/3)
}

// RenewalRetry returns the pause after the nth failed renewal in a row, n from 0. The pause
// is at most half of the trust left, so that it ends before the trust does. If left is 0 or
// less, the trust has ended, but the lock is kept through an outage (layout.AWSLabs). In
// that case this bound does not apply.
func RenewalRetry(n int, every, left time.Duration, u float64) time.Duration {
	const first = 50 * time.Millisecond
	most := min(every/4, 5*time.Second)
	if left > 0 {
		most = min(most, max(left/2, first))
	}
	return Backoff(n, first, most, u)
}

// Demand is how many renewals per second the leases of a client need.
type Demand struct {
	Usual float64 // renewals per second if each lease is renewed once per period
	Least float64 // renewals per second if each lease is renewed once in the time for which it is trusted
}

// Add adds a lease that is renewed once every period and trusted for the duration trust.
func (d Demand) Add(every, trust time.Duration) Demand {
	return Demand{Usual: d.Usual + perSecond(every), Least: d.Least + perSecond(trust)}
}

// Remove undoes an Add.
func (d Demand) Remove(every, trust time.Duration) Demand {
	return Demand{Usual: max(d.Usual-perSecond(every), 0), Least: max(d.Least-perSecond(trust), 0)}
}

func perSecond(every time.Duration) float64 { return 1 / max(every, time.Millisecond).Seconds() }

// Pace limits the renewals per second to a table that throttles them, by additive increase
// and multiplicative decrease (Chiu and Jain, "Analysis of the Increase and Decrease
// Algorithms", 1989). The zero Pace sets no limit.
type Pace struct {
	PerSecond float64
	lowered   time.Duration // time when the pace was last lowered, counted from some origin
	raised    time.Duration // time when the pace was last raised, counted from some origin
}

// These constants say how the pace changes. Throttled answers within a short time lower the
// pace only once, because a table that throttles one request also throttles those sent with
// it. The pace never falls below paceReserve times the rate that keeps every lease trusted.
// The reserve allows for renewals that are throttled.
const (
	paceCut     = 0.8
	paceHolds   = 250 * time.Millisecond
	paceGrowth  = 0.05 // growth of the pace per second, as a fraction of the usual demand
	paceReserve = 1.5
	paceLeast   = 5.0
	paceFree    = 1.5 // the limit is removed above this multiple of the usual demand
)

// Throttled returns the pace after a throttled renewal. sent is the time when the renewal
// was sent.
func (p Pace) Throttled(d Demand, sent, now time.Duration) Pace {
	switch {
	case p.PerSecond == 0:
		p.PerSecond = d.Usual
	case sent < durations.Sum(p.lowered, paceHolds):
		return p
	}
	return Pace{PerSecond: max(p.PerSecond*paceCut, d.Least*paceReserve, paceLeast), lowered: now, raised: now}
}

// Succeeded returns the pace after a successful renewal.
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

// Gap returns the time between two renewals at this pace.
func (p Pace) Gap() time.Duration {
	if p.PerSecond == 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / p.PerSecond)
}
