package leasehold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/renewals"
)

// manyTried is how many attempts may be without an answer before the record is
// read to settle them: a condition's IN takes 100 values.
const manyTried = 50

// mostNamed is how many versions a condition names at most, besides one more.
const mostNamed = 99

// Renew renews now, and changes data, attributes or lease if opts say so.
// Needed only with WithoutRenewal or to store something. Failures are retried
// until ctx or the trust ends. When ctx ends while an attempt is without an
// answer the error is ErrUnknownOutcome: the lease may be renewed, the data
// stored. With a ctx that has ended before, nothing is sent.
func (l *Lock) Renew(ctx context.Context, opts ...RenewOption) error {
	h := l.h
	var r renewal
	for _, o := range opts {
		o.toRenew(&r)
	}
	if err := l.Err(); err != nil {
		return err
	}
	if r.lease != 0 {
		if h.session != nil {
			return h.c.unsupported("WithLease together with SharedLease")
		}
		if err := h.c.checkLease("renew", h.key, r.lease); err != nil {
			return err
		}
	}
	if err := h.want.checkAlone(h.c, byConfig, &r.changes); err != nil {
		return err
	}
	if err := h.c.checkChanges("renew", h.key, &r.changes); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return h.c.errorf("renew", h.key, "%w", context.Cause(ctx))
	}
	done := make(chan error, 1)
	h.c.detach(func() { done <- h.renewUntil(ctx, r) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	return h.c.unknownOutcome("renew", h.key, context.Cause(ctx))
}

// renewUntil renews on behalf of a caller. Between its attempts others may
// renew: what it is to store may be what does not get through.
func (h *holding) renewUntil(ctx context.Context, r renewal) error {
	unknown := false
	var last error
	for n := 0; ; n++ {
		if ctx.Err() != nil || !h.beginWriting(ctx) {
			return h.renewalEnded(ctx, unknown, last)
		}
		a := h.renewOnce(ctx, r, h.turnUntil(h.besideCommits()))
		switch {
		case a.Effect == decide.Applied:
			return nil
		case h.ended() != nil:
			return h.ended()
		case a.Cause == decide.Refused && !unknown:
			return opError("renew", h.c.cfg.Table, h.key, a.err)
		case a.Cause == decide.Refused:
			return h.c.unknownOutcome("renew", h.key, a.err)
		}
		unknown, last = unknown || a.Effect == decide.Unknown, a.err
		pause(ctx.Done(), h.c.backoff(n, time.Second))
	}
}

// renewalEnded is the error of a caller's renewal that is not repeated any more.
func (h *holding) renewalEnded(ctx context.Context, unknown bool, last error) error {
	err := h.ended()
	switch {
	case err != nil:
		return err
	case last == nil:
		return context.Cause(ctx)
	}
	err = context.Cause(ctx)
	if unknown {
		err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return &OpError{Op: "renew", Table: h.c.cfg.Table, Key: h.key, Err: errors.Join(err, last)}
}

// beginWriting keeps other renewals out until endWriting; false: ctx or trust
// ended before.
func (h *holding) beginWriting(ctx context.Context) bool {
	select {
	case h.writing <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-h.over:
	}
	return false
}

func (h *holding) endWriting() { <-h.writing }

// turnUntil returns what ends a turn of writing, and then keeps no commits out
// any more: once, however often it is called.
func (h *holding) turnUntil(leave func()) func() {
	return sync.OnceFunc(func() {
		leave()
		h.endWriting()
	})
}

// renewDue sends one renewal in the background. It waits for a write of this
// lock that is under way, not in the place of other locks' renewals.
func (h *holding) renewDue() renewals.Outcome {
	if h.ended() != nil {
		return renewals.Over
	}
	h.mu.Lock()
	h.begun = true // it has come to its turn: whatever follows is not a pause
	h.mu.Unlock()
	select {
	case h.writing <- struct{}{}:
	default:
		h.c.renewals.Waits(h.renewal)
		if !h.beginWriting(context.Background()) {
			return renewals.Over
		}
	}
	leave, ok := h.betweenCommits()
	if !ok {
		h.c.renewals.Waits(h.renewal)
		leave = h.besideCommits()
	}
	endTurn := h.turnUntil(leave)
	if h.isManual() {
		endTurn()
		return renewals.Over
	}
	return outcomeOf(h.renewOnce(h.ctx, renewal{}, endTurn))
}

// isManual reports whether nothing renews the lock but its callers.
func (h *holding) isManual() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.manual
}

// outcomeOf is what the answer to a renewal means for the next one.
func outcomeOf(a answer) renewals.Outcome {
	switch {
	case a.Effect == decide.Applied:
		return renewals.Renewed
	case a.Cause == decide.Busy && a.Outage:
		return renewals.Throttled
	case a.Cause == decide.Busy:
		return renewals.Conflict
	case a.Effect == decide.Unknown && !a.Outage:
		return renewals.Silent
	}
	return renewals.Failed
}

// renewOnce sends one renewal. Its answer is Applied only if the lock is
// trusted from that attempt on. The turn ends before anybody is told, who may
// commit or release the lock.
func (h *holding) renewOnce(ctx context.Context, r renewal, endTurn func()) answer {
	defer endTurn()
	requests := 1 + h.resolveMany(ctx)
	h.mu.Lock()
	now := h.c.now()
	outage := h.throughOutage(now)
	if h.cause != nil || now.Past(h.until) && !outage {
		h.mu.Unlock()
		endTurn()
		return answer{Reply: decide.Reply{Effect: decide.NotApplied}, err: h.ended()}
	}
	timing := h.timing
	if r.lease != 0 {
		timing = timing.Scaled(r.lease)
	}
	hold := h.asHeld()
	a := h.c.newAttempt(timing.Lease)
	h.tried = append(h.tried, a)
	h.stored = h.stored || !r.changes.none()
	h.begun = true
	if until := h.trustedFrom(timing, a); until.Mono < h.until.Mono {
		// The shorter lease may land without our knowing.
		h.until = h.until.Earlier(until)
		h.rearm(now)
		if h.renewal != nil {
			h.c.renewals.Lasts(h.renewal, now.Remaining(h.until))
		}
	}
	remaining := h.remaining(now)
	if outage {
		remaining = max(remaining, h.timing.Every)
	}
	within := decide.RenewalDeadline(remaining)
	if h.session != nil { // nothing is trusted for longer or less long by its reply
		within = attemptLimit
	}
	ch := protocol.Changes(r.changes)
	h.mu.Unlock()

	h.c.renewing.Add(1)
	ans := h.c.write(ctx, h.proto.Renew(hold, renewalOf(a, ch)), within)
	h.c.renewing.Add(-1)
	switch {
	case ans.Effect == decide.Applied:
		rec, err := h.decode(ans.item)
		if err != nil { // what we wrote ourselves does not read: not our record any more
			endTurn()
			h.lose(LostReplaced, nil, err)
			return answer{Reply: decide.Reply{Effect: decide.NotApplied}, err: err}
		}
		h.confirm(a, rec)
		h.c.sweep(h.ctx, h.want, ans.item)
	case ans.Cause == decide.ConditionFailed:
		ans = h.settle(ctx, ans, endTurn)
	case ans.Effect == decide.NotApplied:
		h.untry(a)
	}
	endTurn()
	took := h.c.now().Mono - a.sent.Mono
	if ans.Effect == decide.Applied {
		if err := h.ended(); err != nil {
			return answer{Reply: decide.Reply{Effect: decide.NotApplied}, err: err}
		}
		h.c.failing.over(h)
		h.c.emit(h.ctx, Event{Kind: EventRenewed, Key: h.key, Token: h.token, Took: took, Requests: requests})
		return ans
	}
	if ans.Cause == decide.ConditionFailed {
		return ans
	}
	h.mu.Lock()
	h.lastErr = ans.err
	h.heard(ans)
	if h.outage != nil && h.c.cfg.HoldThroughOutage && h.renewal != nil {
		// It has been heard of for now: it is another's turn.
		h.c.renewals.Lasts(h.renewal, h.timing.Lease)
	}
	remaining = h.remaining(h.c.now())
	h.mu.Unlock()
	h.c.failing.add(h, ans.err)
	if ans.Cause == decide.Busy {
		h.c.emit(h.ctx, Event{Kind: EventThrottled, Key: h.key, Token: h.token, Requests: 1, Err: ans.err})
	}
	h.c.emit(h.ctx, Event{Kind: EventRenewError, Key: h.key, Token: h.token, Took: took, Remaining: remaining,
		Requests: requests, Err: opError("renew", h.c.cfg.Table, h.key, ans.err)})
	return ans
}

// renewalOf spells attempt a of a renewal.
func renewalOf(a attempt, ch protocol.Changes) protocol.Renewal {
	return protocol.Renewal{Version: a.version, Lease: a.lease, Now: time.Now(), Changes: ch}
}

// settle says what a failed condition means: an earlier attempt of ours that
// landed unseen, or the end.
func (h *holding) settle(ctx context.Context, ans answer, endTurn func()) answer {
	item, ok := h.c.shown(ctx, h.key, ans)
	if !ok {
		return answer{Reply: decide.Reply{Effect: decide.Unknown, Cause: decide.Unreachable}, err: ans.err}
	}
	reason, r, damage := h.gone(item)
	if reason != "" {
		endTurn()
		h.lose(reason, r, damage)
		return ans
	}
	a, ours := h.landed(r.Version)
	if !ours { // somebody else renews under our grant: it was resumed elsewhere
		endTurn()
		h.lose(LostReplaced, r, nil)
		return ans
	}
	h.confirm(a, *r)
	return answer{Reply: decide.Reply{Effect: decide.Applied}, item: item}
}

// landed returns the attempt of that version, if it is one without an answer.
func (h *holding) landed(version string) (attempt, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.tried, func(a attempt) bool { return a.version == version })
	if i < 0 {
		return attempt{}, false
	}
	return h.tried[i], true
}

// untry forgets an attempt that is known not to have landed.
func (h *holding) untry(a attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = slices.DeleteFunc(h.tried, func(t attempt) bool { return t.version == a.version })
	h.stored = h.stored && len(h.tried) > 0
}

// resolveMany reads the record when too many attempts have had no answer. A
// version of ours settles those up to it; a read that shows none proves
// nothing, and the oldest are given up: should one land yet, the lock is lost,
// never doubled. It returns the number of requests.
func (h *holding) resolveMany(ctx context.Context) int {
	h.mu.Lock()
	many := len(h.tried) >= manyTried
	h.mu.Unlock()
	if !many {
		return 0
	}
	if a := h.c.read(context.WithoutCancel(ctx), h.key); a.err == nil && a.item != nil {
		if r, err := h.decode(a.item); err == nil && r.Grant == h.grant {
			if landed, ok := h.landed(r.Version); ok {
				h.confirm(landed, r)
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if extra := len(h.tried) - manyTried; extra > 0 {
		h.tried = slices.Delete(h.tried, 0, extra)
	}
	return 1
}

// shown returns the record that made a condition fail; nil: there is none. An
// engine that does not return it with the failure is asked.
func (c *Client) shown(ctx context.Context, key Key, ans answer) (protocol.Item, bool) {
	if ans.Old != nil {
		return ans.Old, true
	}
	a := c.read(context.WithoutCancel(ctx), key)
	return a.item, a.err == nil
}
