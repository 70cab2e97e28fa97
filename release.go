package leasehold

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/places"
)

// releasing is one effort to free a key, which several calls may wait for.
type releasing struct {
	limit  context.Context    // of the call that makes it: once over, the effort winds up
	ctx    context.Context    // of its requests
	cut    context.CancelFunc // ends them, without an answer
	places *places.Effort     // of its requests

	done  chan struct{}
	err   error // once done is closed
	freed bool  // once done is closed: the record does not show the grant any more
}

func newReleasing(limit context.Context) *releasing {
	op := &releasing{limit: limit, done: make(chan struct{})}
	op.ctx, op.cut = context.WithCancel(context.WithoutCancel(limit))
	return op
}

// end says how the effort ended. Only what showed the grant gone is final.
func (op *releasing) end(err error) {
	op.err, op.freed = err, err == nil || errors.Is(err, ErrLost)
	op.cut()
	close(op.done)
}

func (op *releasing) ended() bool {
	select {
	case <-op.done:
		return true
	default:
		return false
	}
}

// failed reports whether the effort has ended and the grant may stand.
func (op *releasing) failed() bool { return op.ended() && !op.freed }

// Release frees the key. The context ends before the write is sent. It may be
// called again until it has freed the key: nil once released, ErrLost if the
// lock was lost before. ErrUnknownOutcome, if no reply came, and a refusal,
// which has freed nothing, are not final: call it again, or let the lease run
// out. A ctx that has ended shortens Release to Config.ReleaseGrace; it does not
// skip it.
//
// With Config.SharedLease the lease is one that goes on being renewed: there a
// release that failed is repeated by the client until the key is free.
func (l *Lock) Release(ctx context.Context, opts ...ReleaseOption) error {
	return l.group().Release(ctx, opts...)
}

// Release frees all keys, in one transaction for up to 100; if that is refused
// or has no answer, one by one and in parallel. It joins the errors, in the order
// of Locks, each as of Lock.Release, and like that may be called again. Options
// apply to every lock.
func (g *Group) Release(ctx context.Context, opts ...ReleaseOption) error {
	rs, err := g.releases(opts)
	if err != nil {
		return err
	}
	return joined(g.release(ctx, rs)...)
}

// releases turns the options of a release into one release for each lock. With
// an error, of a bad option, they are releases without options.
func (g *Group) releases(opts []ReleaseOption) ([]*release, error) {
	rs := make([]*release, len(g.locks))
	var bad error
	for i, l := range g.locks {
		e, err := g.c.newEnding(l.h, opts)
		if err != nil {
			bad = cmp.Or(bad, err)
			e = ending{policy: l.h.want.policy}
		}
		rs[i] = &release{h: l.h, e: e}
	}
	return rs, bad
}

// release frees the keys, except those whose grants other handles share: there
// it closes this handle alone.
func (g *Group) release(ctx context.Context, rs []*release) []error {
	var last []*release
	for i, l := range g.locks {
		if !l.leaveToOthers() {
			last = append(last, rs[i])
		}
	}
	return g.c.release(ctx, last)
}

// leaveToOthers closes this handle alone, if others share the grant.
func (l *Lock) leaveToOthers() bool {
	l.h.mu.Lock()
	if l.closed {
		l.h.mu.Unlock()
		return true
	}
	if l.h.lease.Cause() != nil || len(l.h.handles) == 1 {
		l.h.mu.Unlock()
		return false
	}
	l.closed = true
	l.dropWarnings()
	l.h.handles = slices.DeleteFunc(l.h.handles, func(o *Lock) bool { return o == l })
	l.h.mu.Unlock()
	l.cancel(ErrReleased)
	return true
}

// isShared reports whether other handles share the grant.
func (l *Lock) isShared() bool {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	return len(l.h.handles) > 1
}

// release frees the key of one lock; see Client.release.
func (h *holding) release(ctx context.Context, e ending) error {
	return h.c.release(ctx, []*release{{h: h, e: e}})[0]
}

// effort returns the effort to free the key that is under way or has freed it,
// or begins one. One that only winds up, since nobody waits for it, is cut short.
func (h *holding) effort(limit context.Context, places *places.Effort) (op *releasing, own bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if op := h.releasing; op != nil && !op.failed() {
		if op.limit.Err() != nil {
			op.cut()
		}
		return op, false
	}
	h.releasing = newReleasing(limit)
	h.releasing.places = places
	return h.releasing, true
}

// outcome waits for an effort to free the key.
func (h *holding) outcome(limit context.Context, op *releasing) error {
	if !endsWithin(limit, op.done) {
		return h.unknownRelease(context.Cause(limit))
	}
	return op.err
}

// endsWithin waits until done is closed; false: limit came first.
func endsWithin(limit context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-limit.Done():
	}
	select {
	case <-done: // both have come
		return true
	default:
		return false
	}
}

func (h *holding) unknownRelease(err error) error {
	return h.c.unknownOutcome("release", h.key, err)
}

// giveBack frees a grant that nobody wants any more.
func (h *holding) giveBack() {
	_ = h.release(context.Background(), ending{policy: h.want.policy}) // reported as an event
}

// endedContext gives a release its grace, and no more.
func endedContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
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
	for name := range r.Attributes {
		if _, changed := ch.Attributes[name]; !changed {
			return true
		}
	}
	for _, v := range ch.Attributes {
		if v != nil {
			return true
		}
	}
	return false
}
