package decide

import "time"

// Deadlines of one renewal attempt.
const (
	renewalAtLeast = 250 * time.Millisecond
	renewalAtMost  = 2 * time.Second
)

// RenewalDeadline is how long one attempt to renew may take: a quarter of the
// trust that is left, so that a lost one leaves room for others.
func RenewalDeadline(left time.Duration) time.Duration {
	d := min(max(left/4, renewalAtLeast), renewalAtMost)
	return min(d, left)
}

// FirstRenewal is the pause between a grant and its first renewal: in the
// second half of the period, so that locks granted together are not renewed
// together, and within a third of the trust left, which a slow grant has
// shortened; u is uniform in [0,1).
func FirstRenewal(every, left time.Duration, u float64) time.Duration {
	return time.Duration((0.5 + 0.5*u) * float64(min(every, max(left, 0)/3)))
}

// NextRenewal is the pause between the reply to a renewal, which took that
// long, and the next. The period counts from the sending, so that slow replies
// move no renewal next to another. One that was not in its place, by its own
// fault or the table's, is followed by one at a random time of the period: so
// whatever bunched renewals, they are spread evenly one period later.
func NextRenewal(every, took, left time.Duration, displaced bool, u float64) time.Duration {
	pause := every - took
	if displaced || pause < every/2 {
		pause = time.Duration(u * float64(every))
	}
	return min(pause, max(left, 0)/3)
}

// RenewalRetry is the pause after the nth attempt in a row to renew that
// failed, n from 0. Its ceiling is half of the trust left, so that the last
// attempts are not slept through. None left: the lock is held on to through an
// outage.
func RenewalRetry(n int, every, left time.Duration, u float64) time.Duration {
	const first = 50 * time.Millisecond
	most := min(every/4, 5*time.Second)
	if left > 0 {
		most = min(most, max(left/2, first))
	}
	return Backoff(n, first, most, u)
}

// Demand is how many renewals a second the leases of a client ask for.
type Demand struct {
	Usual float64 // each once in its period
	Least float64 // each once while it is trusted
}

// Add counts one more lease that is renewed that often and trusted that long.
func (d Demand) Add(every, trust time.Duration) Demand {
	return Demand{Usual: d.Usual + perSecond(every), Least: d.Least + perSecond(trust)}
}

// Remove undoes an Add.
func (d Demand) Remove(every, trust time.Duration) Demand {
	return Demand{Usual: max(d.Usual-perSecond(every), 0), Least: max(d.Least-perSecond(trust), 0)}
}

func perSecond(every time.Duration) float64 { return 1 / max(every, time.Millisecond).Seconds() }

// Pace is how many renewals a second are sent to a table that throttles them:
// additive increase, multiplicative decrease (Chiu and Jain, "Analysis of the
// Increase and Decrease Algorithms", 1989). The zero Pace is none: what is due
// is sent.
type Pace struct {
	PerSecond float64
	lowered   time.Duration // when, since some origin
	raised    time.Duration
}

// How the pace changes. It falls once for the replies of a short time: a table
// that refuses one request refuses those beside it. It never falls below what
// keeps every lease trusted, with half of that to spare for refused ones.
const (
	paceCut     = 0.8
	paceHolds   = 250 * time.Millisecond
	paceGrowth  = 0.05 // of the usual demand, a second
	paceReserve = 1.5
	paceLeast   = 5.0
	paceFree    = 1.5 // of the usual demand: no pace is needed
)

// Throttled is the pace after a renewal that was sent at that time was
// throttled.
func (p Pace) Throttled(d Demand, sent, now time.Duration) Pace {
	switch {
	case p.PerSecond == 0:
		p.PerSecond = d.Usual
	case sent < p.lowered+paceHolds:
		return p
	}
	return Pace{PerSecond: max(p.PerSecond*paceCut, d.Least*paceReserve, paceLeast), lowered: now, raised: now}
}

// Landed is the pace after a renewal has landed.
func (p Pace) Landed(d Demand, now time.Duration) Pace {
	if p.PerSecond == 0 {
		return p
	}
	p.PerSecond += paceGrowth * d.Usual * min(now-p.raised, time.Second).Seconds()
	p.raised = now
	if p.PerSecond >= max(paceFree*d.Usual, paceLeast) {
		return Pace{}
	}
	return p
}

// Gap is the time from one renewal to the next at this pace.
func (p Pace) Gap() time.Duration {
	if p.PerSecond == 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / p.PerSecond)
}
