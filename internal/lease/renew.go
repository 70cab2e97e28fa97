package lease

import (
	"cmp"
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/renewals"
)

// Attempt is one write that begins or renews a lease. Its version is never used again.
type Attempt struct {
	Version string
	Sent    decide.Instant // a time before the request was sent
	Lease   time.Duration
	Stores  bool // the attempt writes data or attributes of the caller
}

// ID returns the attempt's version.
func (a Attempt) ID() string { return a.Version }

// Changes are the values that a renewal changes besides the version.
type Changes struct {
	Lease  time.Duration // zero keeps the lease unchanged
	Record protocol.Changes
}

// Renew sends renewals until one succeeds or is refused, or until ctx or the lease ends.
// Other renewals may come between its attempts. The error is the reason why the lease
// ended, the cause of ctx if nothing was sent, or else the *attempts.Failure of the last
// attempt. unknown reports whether an attempt had no answer.
func (l *Lease) Renew(ctx context.Context, ch Changes) (unknown bool, err error) {
	var last error
	err = l.c.Requests.Repeat(ctx, func() error {
		if !l.enter(ctx) {
			return cmp.Or(l.Cause(), last, attempts.Cause(ctx))
		}
		r := l.try(ctx, ch, l.lockWrites())
		unknown = unknown || r.Outcome == attempts.Unanswered
		switch r.Outcome {
		case attempts.Applied:
			return nil
		case attempts.Rejected:
			return r.Err
		}
		last = r.Failure()
		return last
	}, func(*attempts.Failure) error { return l.Ended() })
	return unknown, err
}

// Answered reports whether every renewal has an answer, and no renewal is in flight.
func (l *Lease) Answered() bool {
	return len(l.renews) == 0 && len(l.pending.Unanswered()) == 0
}

// LastErr returns why the last finished renewal was not applied, or nil if it was.
func (l *Lease) LastErr() error { return l.pending.LastErr() }

// ByHand ends the background renewals, so that only calls of Renew renew the lease. It first
// waits for a renewal in flight.
func (l *Lease) ByHand() {
	if !l.enter(context.Background()) {
		return
	}
	defer l.renews.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.manual = true
	l.c.Scheduler.Remove(l.renewal)
}

// enter locks out other renewals until l.renews is unlocked. It returns false if ctx or the
// trust has ended.
func (l *Lease) enter(ctx context.Context) bool {
	if ctx.Err() != nil || l.IsOver() {
		return false
	}
	select {
	case l.renews <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-l.over:
	}
	return false
}

// lockWrites waits until no transaction that names the record is in flight, because a
// renewal would conflict with such a transaction. It waits for at most a quarter of the
// remaining trust.
func (l *Lease) lockWrites() (leave func()) {
	patience := time.NewTimer(l.Remaining() / 4)
	defer patience.Stop()
	select {
	case l.terms.Writes <- struct{}{}:
		return l.terms.Writes.Unlock
	case <-patience.C:
	case <-l.over:
	}
	return func() {}
}

// due sends one renewal in the background. While the renewal waits for other writes of the
// record, other leases can be renewed.
func (l *Lease) due() renewals.Outcome {
	if l.Ended() != nil {
		return renewals.Over
	}
	l.mu.Lock()
	l.begun = true // from here on, a delay does not count as a pause of the process
	l.mu.Unlock()
	select {
	case l.renews <- struct{}{}:
	default:
		l.c.Scheduler.Waits(l.renewal)
		if !l.enter(context.Background()) {
			return renewals.Over
		}
	}
	leave := l.terms.Writes.Unlock
	select {
	case l.terms.Writes <- struct{}{}:
	default:
		l.c.Scheduler.Waits(l.renewal)
		leave = l.lockWrites()
	}
	l.mu.Lock()
	manual := l.manual
	l.mu.Unlock()
	if manual { // the lease has become manual meanwhile
		leave()
		l.renews.Unlock()
		return renewals.Over
	}
	return outcomeOf(l.try(l.terms.Values, Changes{}, leave))
}

// outcomeOf translates the result of an attempt for the scheduler.
func outcomeOf(r attempts.Result[Attempt]) renewals.Outcome {
	switch {
	case r.Outcome == attempts.Applied:
		return renewals.Renewed
	case r.Cause == decide.Busy && r.Outage:
		return renewals.Throttled
	case r.Cause == decide.Busy:
		return renewals.Conflict
	case r.Outcome == attempts.Unanswered && !r.Outage:
		return renewals.Silent
	}
	return renewals.Failed
}

// try sends one renewal. If it is applied, the trust counts from when it was sent. If it is
// rejected, the lease has ended and the error is the cause. The caller has locked out other
// renewals, and transactions until leave is called. try lets both write the record again
// before it calls Lost, Renewed or Failed of the Holder, because these may end the lease.
func (l *Lease) try(ctx context.Context, ch Changes, leave func()) attempts.Result[Attempt] {
	unlock := func() {
		leave()
		l.renews.Unlock()
	}
	ctx = context.WithoutCancel(ctx)
	report := Report{Requests: 1 + l.settleByReading(ctx)}
	a, w, within, ok := l.next(ch)
	if !ok {
		unlock()
		return l.rejected(attempts.Result[Attempt]{Attempt: a})
	}
	l.c.sending.Add(1)
	r := l.pending.Send(ctx, l.c.Requests, attempts.Operation[Attempt]{
		Key: l.terms.Key, Shows: l.shows, Within: within,
	}, a, w)
	l.c.sending.Add(-1)

	var lost *Loss
	switch r.Outcome {
	case attempts.Applied:
		record, err := l.holder.Decode(r.Item)
		if err == nil {
			l.extend(r.Attempt, record)
		} else { // a record that cannot be decoded is no longer ours
			lost = &Loss{Reason: Unreadable, Err: err}
		}
	case attempts.Rejected:
		lost = &Loss{Reason: Gone, Item: r.Item}
	}
	unlock()
	if lost != nil {
		l.holder.Lost(*lost)
		return l.rejected(r)
	}
	report.Took = l.c.Now().Mono - a.Sent.Mono
	if r.Outcome == attempts.Applied {
		if l.Ended() != nil {
			return l.rejected(r)
		}
		l.holder.Renewed(report)
		return r
	}
	report.Remaining, report.Err, report.Throttled = l.failed(r), r.Err, r.Cause == decide.Busy
	l.holder.Failed(report)
	return r
}

func (l *Lease) rejected(r attempts.Result[Attempt]) attempts.Result[Attempt] {
	r.Outcome, r.Err = attempts.Rejected, l.Ended()
	return r
}

// next adds the next attempt and returns its write. If the lease has ended, it returns
// false and adds no attempt. A release must name every attempt, so none may be added after
// the lease has ended.
func (l *Lease) next(ch Changes) (a Attempt, w *protocol.Write, within time.Duration, ok bool) {
	l.mu.Lock()
	now := l.c.Now()
	if l.cause != nil || l.hasRunOut(now) {
		l.mu.Unlock()
		return a, nil, 0, false
	}
	timing := l.timing
	if ch.Lease != 0 {
		timing = timing.Scaled(ch.Lease)
	}
	versions := l.versions()
	a = Attempt{Version: protocol.NewVersion(), Sent: now, Lease: timing.Lease, Stores: !ch.Record.None()}
	l.pending.Add(a)
	l.begun = true
	if until := l.trustedFrom(timing, a); until.Mono < l.until.Mono {
		// The shorter lease may be applied even if the answer is a refusal, as that may be
		// the answer to a second copy of the request.
		l.until = l.until.Earlier(until)
		l.reset(now)
		l.c.Scheduler.Lasts(l.renewal, now.Remaining(l.until))
	}
	within = l.deadline(now)
	l.mu.Unlock()
	return a, l.holder.Renewal(a, versions, ch.Record), within, true
}

// deadline returns how long an attempt may take. The caller must hold l.mu.
func (l *Lease) deadline(now decide.Instant) time.Duration {
	if l.terms.Parent != nil { // with a parent, the reply does not change the trust
		return attempts.Limit
	}
	remaining := now.Remaining(l.until)
	if l.throughOutage(now) {
		remaining = max(remaining, l.timing.Every)
	}
	return decide.RenewalDeadline(remaining)
}

// shows returns the attempt that a record shows after the condition of a renewal has
// failed. If it shows none, another client has the key, or has resumed this grant and
// renews it.
func (l *Lease) shows(item protocol.Item, sent []Attempt) (a Attempt, ok bool) {
	if !l.holder.Stands(item) {
		return a, false
	}
	record, _ := l.holder.Decode(item) // Stands has decoded the item, so there is no error
	return attempts.Find(sent, record.Version)
}

// extend records an attempt that was applied: the trust now counts from when it was sent.
// Trust that has ended is not restored.
func (l *Lease) extend(a Attempt, record protocol.Record) {
	l.mu.Lock()
	now := l.c.Now()
	if l.cause != nil || l.hasRunOut(now) {
		l.mu.Unlock()
		return // Look will report the end
	}
	l.timing = l.timing.Scaled(a.Lease)
	l.until = l.trustedFrom(l.timing, a)
	l.record = record
	l.pending.Settle(a.Version)
	for _, later := range l.pending.Unanswered() { // later attempts with a shorter lease may still be applied
		l.until = l.until.Earlier(l.trustedFrom(l.timing.Scaled(later.Lease), later))
	}
	l.begun, l.handed, l.lastErr, l.outage = false, 0, nil, nil
	l.reset(now)
	l.c.Scheduler.Renewed(l.renewal, l.timing.times(), now.Mono-a.Sent.Mono, now.Remaining(l.until))
	l.mu.Unlock()
	l.holder.Extended()
}

// reset sets the timers according to the remaining trust. The caller must hold l.mu, and
// the trust must not have ended.
func (l *Lease) reset(now decide.Instant) {
	l.expiry.Reset(now.Remaining(l.until))
	l.rearm()
}

// failed records why an attempt was not applied, and returns how much longer the lease is
// trusted.
func (l *Lease) failed(r attempts.Result[Attempt]) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.c.Now()
	l.lastErr, l.outage = r.Err, nil
	if r.Outage {
		l.outage = &now
		if l.c.ThroughOutage {
			// After the answer that DynamoDB is unavailable, the trust lasts for one lease,
			// so other locks are renewed first.
			l.c.Scheduler.Lasts(l.renewal, l.timing.Lease)
		}
	}
	return now.Remaining(l.trustEnds())
}

// settleByReading reads the record when too many attempts have had no answer. If the record
// shows one of them, that attempt and all earlier ones are settled. If it shows none, that
// proves nothing, and the oldest attempts are dropped. If a dropped attempt is still
// applied, the lease is lost, but no key is held twice. settleByReading returns the number
// of requests.
func (l *Lease) settleByReading(ctx context.Context) int {
	sent := l.pending.Unanswered()
	if len(sent) < attempts.MostUnanswered {
		return 0
	}
	item, _ := l.c.Requests.Read(ctx, l.terms.Key) // if there is no answer, nothing is settled
	if a, ok := l.shows(item, sent); ok {
		record, _ := l.holder.Decode(item) // shows has decoded the item, so there is no error
		l.extend(a, record)
	}
	l.pending.Keep(attempts.MostUnanswered)
	return 1
}
