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
	Sent    decide.Instant // when the attempt was made, shortly before its request was sent
	Lease   time.Duration
	Stores  bool // the attempt writes data or attributes that the caller has changed
}

// ID returns the attempt's version. Package attempts compares it with the version in the record,
// to find out which attempt was applied.
func (a Attempt) ID() string { return a.Version }

// Changes are the changes of the lease and the record that a renewal makes.
type Changes struct {
	Lease  time.Duration // the new lease; zero keeps the lease unchanged
	Record protocol.Changes
}

// Renew sends renewals until one is applied, and then returns nil. It returns an error if the lease
// has ended, if DynamoDB refuses a renewal, or if ctx is done. The error is the cause of the
// lease's end, or else the *attempts.Failure of the last attempt. If no attempt was sent, it is the
// cause of ctx. The result "unknown" is true if an attempt had no answer.
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

// Answered reports whether no renewal is in flight and every renewal that was sent has been
// answered.
func (l *Lease) Answered() bool {
	return len(l.renews) == 0 && len(l.pending.Unanswered()) == 0
}

// LastErr returns why the last finished renewal was not applied, or nil if it was applied.
func (l *Lease) LastErr() error { return l.pending.LastErr() }

// ByHand stops the background renewals, so that only calls of Renew renew the lease. If a renewal
// is in flight, ByHand first waits until it has finished.
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

// enter locks l.renews, so that no other renewal begins until l.renews is unlocked. If ctx is done
// or the trust ends first, enter locks nothing, and returns false.
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

// lockWrites locks terms.Writes, because a renewal would conflict with a transaction that checks or
// writes the record. After a quarter of the remaining trust it gives up, and the caller sends the
// renewal anyway. The function "leave" unlocks terms.Writes if lockWrites has locked it.
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

// due sends one background renewal. While this renewal waits for a transaction or a call of
// Renew, the scheduler may renew other leases.
func (l *Lease) due() renewals.Outcome {
	if l.Ended() != nil {
		return renewals.Over
	}
	l.mu.Lock()
	l.begun = true // the process is running, so a later expiry is not reported as a pause
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
	if manual { // ByHand was called while this renewal waited
		leave()
		l.renews.Unlock()
		return renewals.Over
	}
	return outcomeOf(l.try(l.terms.Values, Changes{}, leave))
}

// outcomeOf converts the result of an attempt to an Outcome for the scheduler.
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

// try sends one renewal, and extends or ends the lease according to the answer. The caller must
// have locked l.renews. The function "leave" unlocks terms.Writes. Both are unlocked before a call
// of the Holder's Lost, Renewed or Failed, which may end the lease.
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
		} else { // a record that cannot be decoded no longer shows the grant
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

// rejected returns r as a rejected attempt, with the error that ended the lease.
func (l *Lease) rejected(r attempts.Result[Attempt]) attempts.Result[Attempt] {
	r.Outcome, r.Err = attempts.Rejected, l.Ended()
	return r
}

// next adds the next attempt to l.pending, and returns the attempt and its write. If the lease has
// ended, next adds nothing and returns false, because a release may already have listed the
// versions of all attempts in its condition.
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
		// DynamoDB may store the shorter lease even if it refuses the attempt: the network may deliver
		// two copies of the request. DynamoDB may then apply one copy and refuse the other.
		l.until = l.until.Earlier(until)
		l.reset(now)
		l.c.Scheduler.Lasts(l.renewal, now.Remaining(l.until))
	}
	within = l.deadline(now)
	l.mu.Unlock()
	return a, l.holder.Renewal(a, versions, ch.Record), within, true
}

// deadline returns the longest time that an attempt waits for its answer. The caller must
// hold l.mu.
func (l *Lease) deadline(now decide.Instant) time.Duration {
	if l.terms.Parent != nil { // the trust depends on the parent, so the reply is not urgent
		return attempts.Limit
	}
	remaining := now.Remaining(l.until)
	if l.throughOutage(now) {
		remaining = max(remaining, l.timing.Every)
	}
	return decide.RenewalDeadline(remaining)
}

// shows returns the attempt in sent that wrote the record in item. The item was read, or came with
// a failed condition. shows returns false if none of these attempts wrote the record. Then another
// client holds the key, or has resumed this grant and renews it.
func (l *Lease) shows(item protocol.Item, sent []Attempt) (a Attempt, ok bool) {
	if !l.holder.Stands(item) {
		return a, false
	}
	record, _ := l.holder.Decode(item) // cannot fail, as Stands has decoded the item
	return attempts.Find(sent, record.Version)
}

// extend records that attempt a was applied: the trust now counts from the time when this attempt
// was sent. Trust that has ended is not restored.
func (l *Lease) extend(a Attempt, record protocol.Record) {
	l.mu.Lock()
	now := l.c.Now()
	if l.cause != nil || l.hasRunOut(now) {
		l.mu.Unlock()
		return // Look will report that the lease has ended
	}
	l.timing = l.timing.Scaled(a.Lease)
	l.until = l.trustedFrom(l.timing, a)
	l.record = record
	l.pending.Settle(a.Version)
	// DynamoDB may still apply later attempts, which may write shorter leases. So the trust must
	// not last longer than any of these leases allows.
	for _, later := range l.pending.Unanswered() {
		l.until = l.until.Earlier(l.trustedFrom(l.timing.Scaled(later.Lease), later))
	}
	l.begun, l.handed, l.lastErr, l.outage = false, 0, nil, nil
	l.reset(now)
	l.c.Scheduler.Renewed(l.renewal, l.timing.times(), now.Mono-a.Sent.Mono, now.Remaining(l.until))
	l.mu.Unlock()
	l.holder.Extended()
}

// reset sets the timers for the expiry of the lease and for its warnings. The caller must hold
// l.mu, and must have checked that the lease has not ended.
func (l *Lease) reset(now decide.Instant) {
	l.expiry.Reset(now.Remaining(l.until))
	l.rearm()
}

// failed stores the reason why a renewal was not applied, and returns how much longer the lease is
// trusted.
func (l *Lease) failed(r attempts.Result[Attempt]) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.c.Now()
	l.lastErr, l.outage = r.Err, nil
	if r.Outage && l.c.ThroughOutage {
		l.outage = &now
		// The lease is now trusted for one lease duration after this answer. Tell the scheduler,
		// which renews the lease with the least remaining trust first.
		l.c.Scheduler.Lasts(l.renewal, l.timing.Lease)
	}
	return now.Remaining(l.trustEnds())
}

// settleByReading reads the record if too many attempts have had no answer. If an attempt wrote the
// version in the record, this resolves the attempt and all earlier attempts. The oldest unresolved
// attempts are dropped, because a condition can name only a limited number. The result is the
// number of requests.
func (l *Lease) settleByReading(ctx context.Context) int {
	sent := l.pending.Unanswered()
	if len(sent) < attempts.MostUnanswered {
		return 0
	}
	item, _ := l.c.Requests.Read(ctx, l.terms.Key) // a read without an answer resolves no attempt
	if a, ok := l.shows(item, sent); ok {
		record, _ := l.holder.Decode(item) // cannot fail, as shows has decoded the item
		l.extend(a, record)
	}
	// If DynamoDB applies a dropped attempt later, it rejects the next renewal, and the lease is
	// lost. Even then, no other client can hold the key at the same time.
	l.pending.Keep(attempts.MostUnanswered)
	return 1
}
