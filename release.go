package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// releasing is one effort to free a key.
type releasing struct {
	done chan struct{}
	err  error // once done is closed
}

// Release frees the key. The context ends before the write is sent. It may
// be called again: nil once released, ErrLost if the lock was lost before,
// ErrUnknownOutcome (call it again, or let the lease run out) if no reply
// came. A ctx that has ended shortens Release to Config.ReleaseGrace; it does
// not skip it.
func (l *Lock) Release(ctx context.Context, opts ...ReleaseOption) error {
	e, err := l.h.c.newEnding(l.h, opts)
	if err != nil {
		return err
	}
	if l.leaveToOthers() {
		return nil
	}
	return l.h.release(ctx, e)
}

// leaveToOthers closes this handle alone, if others share the grant.
func (l *Lock) leaveToOthers() bool {
	l.h.mu.Lock()
	if l.closed {
		l.h.mu.Unlock()
		return true
	}
	if l.h.cause != nil || len(l.h.handles) == 1 {
		l.h.mu.Unlock()
		return false
	}
	l.closed = true
	l.h.handles = slices.DeleteFunc(l.h.handles, func(o *Lock) bool { return o == l })
	l.h.mu.Unlock()
	l.cancel(ErrReleased)
	return true
}

// release ends the trust and frees the key, once however often it is called.
func (h *holding) release(ctx context.Context, e ending) error {
	limit, cancel := atLeast(ctx, h.c.cfg.ReleaseGrace)
	defer cancel()
	h.look()
	trusted := h.end(ErrReleased)
	cause := h.ended()
	if errors.Is(cause, ErrDetached) {
		return ErrDetached
	}
	if lost := (*LostError)(nil); errors.As(cause, &lost) && lost.seenGone() {
		return cause // nothing of ours is left to release
	}

	h.mu.Lock()
	op := h.releasing
	if op == nil || op.unanswered() {
		op = &releasing{done: make(chan struct{})}
		h.releasing = op
		h.c.detach(func() {
			defer close(op.done)
			leave, _ := h.afterCommits(limit)
			defer leave()
			op.err = h.free(limit, e, trusted)
			if errors.Is(cause, ErrLost) {
				op.err = cause
			}
		})
	}
	h.mu.Unlock()
	return h.outcome(limit, op)
}

// outcome waits for an effort to free the key.
func (h *holding) outcome(limit context.Context, op *releasing) error {
	select {
	case <-op.done:
		return op.err
	case <-limit.Done():
	}
	select {
	case <-op.done:
		return op.err
	default:
		return h.unknownRelease(context.Cause(limit))
	}
}

// unanswered reports whether the effort has ended without an answer.
func (op *releasing) unanswered() bool {
	select {
	case <-op.done:
		return errors.Is(op.err, ErrUnknownOutcome)
	default:
		return false
	}
}

func (h *holding) unknownRelease(err error) error {
	return h.c.unknownOutcome("release", h.key, err)
}

// abandon frees a grant that nobody wants any more.
func (h *holding) abandon() {
	_ = h.release(context.Background(), ending{policy: h.want.policy}) // reported as an event
}

// atLeast returns a context that ends with ctx, but not before grace has passed.
func atLeast(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	over := make(chan struct{})
	timer := time.AfterFunc(grace, func() { close(over) })
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-over:
		case <-out.Done():
		}
		cancel(context.Cause(ctx))
	})
	return out, func() {
		timer.Stop()
		stop()
		cancel(context.Canceled)
	}
}

// freeing is the course of one effort: the grant to be freed, which changes
// with every hand-over, and what has been sent for it.
type freeing struct {
	h       *holding
	hold    protocol.Hold
	record  Record // as of the last write known to have landed
	stored  bool   // one of unknown effect may have stored something since
	first   bool   // the first write was sent before the lease had run out
	tried   []attempt
	unknown bool           // a write has had no answer
	sent    int            // since the last report
	until   decide.Instant // when this effort is of no use: the lease has freed the key
}

// free hands the key over or releases it. A lock that was not trusted any more
// gets one conditional release: its record may still be there.
func (h *holding) free(limit context.Context, e ending, trusted bool) error {
	started := h.c.now()
	h.mu.Lock()
	f := h.freeingSince(started, trusted)
	h.mu.Unlock()

	// What was resumed is renewed by itself, and no waiter of this client may
	// take it over like that if its locks share a session.
	alike := (h.session != nil) == (h.c.sharing != nil)
	if trusted && f.first && alike && e.policy == keepRecord && e.changes.none() {
		if settled, err := f.handOver(limit); settled {
			h.reportRelease(started, f.spent(), err)
			return err
		}
	}
	err := f.release(limit, e)
	f.settled(started, err)
	return err
}

// freeingSince returns what there is to be freed, for an effort that starts
// now. A lease that has run out by then, while the lock was held on to through
// an outage or a commit was waited for, vouches for nothing. h.mu is held.
func (h *holding) freeingSince(started decide.Instant, trusted bool) *freeing {
	if h.freeing == nil {
		h.freeing = &freeing{h: h, hold: h.asHeld(), record: h.record, stored: h.stored,
			first: trusted && !started.Past(h.trustEnds())}
	}
	h.freeing.until = started.Add(h.timing.lease)
	return h.freeing
}

// settled ends an effort that has sent its releases: the next in line may seek
// the key.
func (f *freeing) settled(started decide.Instant, err error) {
	h := f.h
	h.reportRelease(started, f.spent(), err)
	if errors.Is(err, ErrUnknownOutcome) {
		h.c.orphan(h.key, f.hold.Versions)
	}
	h.c.lines.pass(h.key, h)
}

func (h *holding) reportRelease(started decide.Instant, requests int, err error) {
	ev := Event{Kind: EventReleased, Key: h.key, Token: h.token, Took: h.c.now().Mono - started.Mono,
		Held: h.heldUntil(started), Requests: requests, Err: err}
	if err != nil {
		h.c.log.LogAttrs(h.ctx, slog.LevelWarn, "leasehold: release failed: the lease frees the key",
			slog.String("key", h.key.String()), slog.Int64("token", h.token), slog.Any("err", err))
	}
	if h.heads == nil {
		h.c.emit(h.ctx, ev)
	}
}

// spent returns the number of requests for a report, each for one.
func (f *freeing) spent() int {
	n := f.sent
	f.sent = 0
	return n
}

// heldUntil is how long the lock was held if it was given up at end: told once,
// so that times can be summed up. A release that is repeated adds nothing to
// the first, one of a lost lock nothing to the loss.
func (h *holding) heldUntil(end decide.Instant) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told || errors.Is(h.cause, ErrLost) {
		return 0
	}
	h.told = true
	return end.Mono - h.granted.Mono
}

// next spells the next attempt to release.
func (f *freeing) next(e ending) (attempt, *protocol.Write) {
	a := f.h.c.newAttempt(f.h.want.timing.lease)
	return a, f.releaseOf(a, e)
}

// release sends the release until it is answered.
func (f *freeing) release(limit context.Context, e ending) error {
	h := f.h
	for n := 0; ; n++ {
		a, w := f.next(e)
		ans := h.c.write(h.ctx, w, attemptLimit)
		f.sent++
		switch {
		case ans.Effect == decide.Applied:
			return nil
		case ans.Cause == decide.ConditionFailed:
			return f.settle(ans, e.policy)
		case ans.Effect == decide.Unknown:
			f.unknown = true
			f.note(a)
		case ans.Cause == decide.Refused && !f.unknown:
			return opError("release", h.c.cfg.Table, h.key, ans.err)
		}
		if !f.first {
			return h.unknownRelease(ans.err) // one is what a lost lock gets
		}
		if len(f.tried) < manyTried {
			pause(limit.Done(), f.h.c.backoff(n, time.Second))
		}
		if limit.Err() != nil || len(f.tried) >= manyTried || h.c.now().Past(f.until) {
			return h.unknownRelease(ans.err)
		}
	}
}

// releaseOf spells the release of a grant by attempt a.
func (f *freeing) releaseOf(a attempt, e ending) *protocol.Write {
	p := f.h.proto
	if e.policy != keepRecord {
		return p.Delete(f.hold)
	}
	return p.Release(f.hold, protocol.Release{
		Version: a.version, Now: time.Now(), Changes: e.changes.against(f.record),
		Expires:      f.h.c.expires(f.stored || e.changes.leave(f.record)),
		ReadersFirst: f.h.readersFirst(),
	})
}

// note remembers an attempt without an answer: the next ones expect it.
func (f *freeing) note(a attempt) {
	f.tried = append(f.tried, a)
	f.hold.Versions = append(f.hold.Versions, a.version)
}

// settle says what it means that the record does not show our grant.
func (f *freeing) settle(ans answer, p policy) error {
	h := f.h
	item, ok := h.c.shown(h.ctx, h.key, ans)
	if !ok {
		return h.unknownRelease(ans.err)
	}
	// Nobody else could be granted the key while the first write was under
	// way, unless that write landed.
	landed := f.unknown && f.first
	if item == nil {
		if landed || f.unknown && p == deleteRecord {
			return nil
		}
		return f.lost(LostBroken, nil)
	}
	r, err := h.decode(item)
	switch {
	case err != nil && landed:
		return nil
	case err != nil:
		return f.lost(LostBroken, nil)
	case r.Released && slices.Contains(versionsOf(f.tried), r.Version), landed && !slices.Contains(f.hold.Grants, r.Grant):
		return nil
	case r.Released && (r.Grant == "" || slices.Contains(f.hold.Grants, r.Grant)): // see holding.settle
		return f.lost(LostBroken, &r)
	}
	return f.lost(LostReplaced, &r)
}

func (f *freeing) lost(reason LostReason, by *Record) error {
	return &LostError{Key: f.h.key, Token: f.h.token, Reason: reason, By: by, At: time.Now().Round(0)}
}

// expires is when TTL may collect a record that is released now; with
// something of the caller's in it, or maybe so, never unless Config says when.
func (c *Client) expires(carries bool) time.Time {
	retention := c.cfg.Retention
	if retention == 0 {
		retention = defaultRetention
		if carries {
			retention = Forever
		}
	}
	if retention == Forever {
		return time.Time{}
	}
	return time.Now().Add(retention)
}

// leave reports whether something of the caller's is in r after the changes.
func (ch changes) leave(r Record) bool {
	if ch.Data != nil || r.Data != nil && !ch.SetData {
		return true
	}
	if len(r.Attributes) > 0 && !ch.replaceAttributes {
		return true
	}
	for _, v := range ch.Attributes {
		if v != nil {
			return true
		}
	}
	return false
}
