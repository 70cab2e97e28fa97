package hold

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/ctxmutex"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Terms are the options of one release.
type Terms struct {
	Delete  bool // delete the record; if false, the record is kept and marked as released
	Changes protocol.Changes
	Done    bool // store the done mark; only for a lock that was acquired with Once or Every
}

// Release frees the keys, each by a write of its own. The slice "terms" has one element for each
// handle of the group.
func (g *Group) Release(ctx context.Context, terms []Terms) error {
	return attempts.Joined(g.release(ctx, g.releases(terms))...)
}

func (g *Group) releases(terms []Terms) []*release {
	rs := make([]*release, len(g.handles))
	for i, l := range g.handles {
		rs[i] = &release{h: l.h, terms: terms[i]}
	}
	return rs
}

// release frees the keys. If other handles share a grant, release only ends this group's
// handle of that grant, and does not free its key.
func (g *Group) release(ctx context.Context, rs []*release) []error {
	for i, l := range g.handles {
		if shared, err := l.endIfShared(rs[i].terms); shared {
			rs[i].open(ctx)
			rs[i].end(err)
		}
	}
	return g.c.release(ctx, rs)
}

// Reasons why the release of one handle has not stored the done mark: other handles share the
// grant. After ErrShared, one of their releases may store it; after errAlone, none can.
var (
	ErrShared = errors.New("others share the grant, the last of whom can store it")
	errAlone  = errors.New("others share the grant, and none of them was acquired for that work, so it may be done again: release them before")
)

// endIfShared ends this handle if other handles share its grant, or if this handle has already
// ended. It sends nothing, so it returns an error if the given terms would have changed the record.
func (l *Handle) endIfShared(terms Terms) (shared bool, _ error) {
	left, before := l.leave()
	if !left && !before || left && l.drop() {
		return false, nil
	}
	switch {
	case terms.Done:
		why := errAlone
		if l.leavesMark() {
			why = ErrShared
		}
		return true, l.h.c.Errorf("release", l.h.key, "this handle has ended, and it was not stored that the work is done: %w", why)
	case left && !terms.Changes.In(l.h.Record()):
		return true, l.h.c.Errorf("release", l.h.key, "this handle has ended, but others share the grant, so no data or attributes were stored: store them with Renew")
	}
	return true, nil
}

// release begins each release in rs that has not begun, frees all keys, and returns the errors in
// order. It may take ReleaseGrace even if ctx is done. If a release stores the done mark, it may
// take until the lease has expired, or Close gives up.
func (c *Holds) release(ctx context.Context, rs []*release) []error {
	end := ctx
	if slices.ContainsFunc(rs, func(r *release) bool { return r.terms.Done }) {
		end = c.Closed
	}
	limit, cancel := c.AtLeastGrace(ctx, end)
	defer cancel()
	for _, r := range rs {
		if !r.isBegun() {
			r.begin(limit, core.ErrReleased)
		}
	}
	errs := make([]error, len(rs))
	inParallel(len(rs), func(i int) { errs[i] = rs[i].finish(limit) })
	return errs
}

// GiveBack releases locks whose callers no longer wait for them. It takes at most ReleaseGrace.
func (c *Holds) GiveBack(held []acquire.Holding) {
	rs := each(held, func(h acquire.Holding) *release { return h.(*Lock).newRelease() })
	_ = c.release(EndedContext(), rs) // errors of these releases are reported as events
}

// release is the release of one lock by one call. If several calls release a lock, only one
// of their releases sends requests at a time.
type release struct {
	h      *Lock
	terms  Terms
	slots  ctxmutex.Mutex // limits how many requests a closing client has in flight; nil for no limit
	again  bool           // a timer has begun this release: the release has no caller, and sends a single attempt; only for a lock without a session
	handle *Handle        // the handle to end if other handles share the grant; nil if the grant is to end

	admitted atomic.Bool // the next request already has a slot

	// The method open sets these fields, when the release begins:
	started decide.Instant     // when the release began; the event of the release counts its time from here
	limit   context.Context    // context of the call; the release sends no retry once this context is done
	ctx     context.Context    // context that the requests receive
	cut     context.CancelFunc // cancels ctx, and with it a request in flight; called only to cut the release short
	done    chan struct{}
	err     error // error of the release; valid once done is closed

	// refused is true if DynamoDB refused the last request for good, so that a repetition is of
	// little use. Only the release to which freeing.r points sends requests, so only that release
	// uses refused.
	refused bool
}

// enter waits for a slot for the next request. It returns false if r.limit is done first.
func (r *release) enter() (leave func(), ok bool) {
	if r.slots == nil {
		return func() {}, true
	}
	return r.slots.Unlock, r.admitted.Swap(false) || r.slots.Lock(r.limit)
}

// newRelease returns a release with the terms of the lock's last release. If the lock has no
// release yet, the terms are those of the call that acquired the lock.
func (h *Lock) newRelease() *release {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.release != nil {
		return &release{h: h, terms: h.release.terms}
	}
	return &release{h: h, terms: Terms{Delete: h.want.Delete}}
}

// begun returns the release of the lock that has begun most recently, or nil if none has.
func (h *Lock) begun() *release {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.release
}

// begin ends the trust in the lock with the given cause, and begins the release. It returns
// false if the lock had ended before.
func (r *release) begin(limit context.Context, cause error) bool {
	r.h.lease.Look()
	return r.beginUnseen(limit, cause)
}

// beginUnseen is like begin, but does not read the clock first. So it begins the release even if the
// lease has expired, unless the expiry was noticed before.
func (r *release) beginUnseen(limit context.Context, cause error) bool {
	r.open(limit)
	if r.h.endWith(cause, r) {
		return true
	}
	r.done = nil
	return false
}

// open sets the contexts of the release's requests, and makes the channel r.done. Other calls wait
// on this channel for the end of the release.
func (r *release) open(limit context.Context) {
	r.limit, r.done, r.started = limit, make(chan struct{}), r.h.c.Now()
	r.ctx, r.cut = context.WithCancel(context.WithoutCancel(limit))
}

// isBegun reports whether this release has begun. The method begin does not begin a release of a
// lock that has already ended, but the method repeat may begin it later.
func (r *release) isBegun() bool { return r.done != nil }

// finish frees the lock's key. But if other handles share the grant, it only drops the release's
// handle. If the lock had ended before this release, finish calls repeat, because the record may
// still show the grant.
func (r *release) finish(limit context.Context) error {
	if !r.isBegun() {
		return r.repeat(limit)
	}
	if r.handle == nil && !r.ended() {
		r.send()
	}
	r.drop()
	return r.wait(limit)
}

// send waits until no commit of the lock is in progress, and then frees the key.
func (r *release) send() {
	r.h.c.Detach(func() {
		_, leave := takeTurns(r.limit, []*Lock{r.h})
		defer leave()
		r.free()
	})
}

// drop removes r.handle from the handles of the grant. It does nothing if r.handle is nil. If other
// handles remain, r is complete. If r.handle was the last, another release frees the key in the
// background, and r has the same result.
func (r *release) drop() {
	switch c := r.h.c; {
	case r.handle == nil || r.ended():
	case r.handle.drop():
		c.Detach(func() { r.end(c.release(r.limit, []*release{{h: r.h, terms: r.terms}})[0]) })
	default:
		r.end(nil)
	}
}

// end ends the release, with err as its result.
func (r *release) end(err error) {
	r.err = err
	close(r.done)
}

func (r *release) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// failed reports whether the release has ended, but the record may still show the grant.
func (r *release) failed() bool { return r.ended() && !freed(r.err) }

// wait waits for a release that has begun, and returns its error.
func (r *release) wait(limit context.Context) error {
	if unknown := attempts.Await(limit, r.done, r); unknown != nil {
		return r.h.c.UnknownOutcome("release", r.h.key, unknown)
	}
	return r.err
}

// Answered reports whether the release is about to end: all its requests were answered, and it
// sends no retry, because the context r.limit is done.
func (r *release) Answered() bool { return r.limit.Err() != nil && r.tried().Answered() }

// LastErr returns the error of the release's last attempt that is no longer in flight.
func (r *release) LastErr() error { return r.tried().LastErr() }

// tried returns the attempts of the lock's releases if this release may send requests now.
// Otherwise it returns an empty sequence.
func (r *release) tried() *attempts.Sequence[releaseAttempt] {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	if f := r.h.freeing; f != nil && f.r == r {
		return &f.tried
	}
	return &attempts.Sequence[releaseAttempt]{}
}

// repeat is called if the lock had ended before this release. It frees the key if the record
// may still show the grant: it waits for a release in progress, or begins this release.
func (r *release) repeat(limit context.Context) error {
	h := r.h
	cause := h.Ended()
	if errors.Is(cause, core.ErrDetached) {
		return cause
	}
	why, lost := core.LossOf(h.lease.Cause())
	if lost && why.SeenGone() {
		return cause // the record has shown that the grant is no longer current, so there is nothing to release
	}
	for {
		current := h.currentRelease(limit, r)
		if current == r {
			r.send()
		}
		err := current.wait(limit)
		switch {
		case current != r && current.failed() && limit.Err() == nil:
			continue // the release of another call has failed: try again, with a request of this call
		case lost && current.ended():
			return cause
		case r.terms.Done && err == nil:
			return h.missingMark()
		}
		return err
	}
}

// currentRelease returns the lock's release that is in progress, or that has freed the key. If
// there is none, it begins the release "next". It cuts short a release in progress if a timer has
// begun it, or if that release's own limit is done.
func (h *Lock) currentRelease(limit context.Context, next *release) *release {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.release; r != nil && !r.failed() {
		if r.again || r.limit.Err() != nil {
			r.cut()
		}
		return r
	}
	next.open(limit)
	h.release = next
	return next
}
