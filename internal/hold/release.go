package hold

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/inflight"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Terms are the options that the caller of a release has chosen.
type Terms struct {
	Delete  bool // delete the record; if false, it is kept and marked as released
	Changes protocol.Changes
	Done    bool // store the mark that the work is done; only for a lock acquired with Once or Every
}

// Release frees the keys, each by a write of its own. terms has one element for each
// handle.
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

// release frees the keys. If other handles share a grant, it only ends this group's handle
// of that grant.
func (g *Group) release(ctx context.Context, rs []*release) []error {
	for i, l := range g.handles {
		if shared, err := l.endIfShared(rs[i].terms); shared {
			rs[i].open(ctx)
			rs[i].end(err)
		}
	}
	return g.c.release(ctx, rs)
}

// Reasons why the release of one handle has not stored the mark of done work.
var (
	ErrShared = errors.New("others share the grant, the last of whom can store it")
	errAlone  = errors.New("others share the grant, and none of them was acquired for that work, so it may be done again: release them before")
)

// endIfShared ends this handle if others share its grant, or if this handle has ended
// before. It sends nothing. If terms ask for changes of the record, endIfShared does not
// make them and returns an error.
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

// release ends the trust in the locks of all releases that have not ended yet, and frees
// their keys. Even if ctx ends at once, the call may take as long as ReleaseGrace. A release
// that stores a mark may take until the lease has ended, or until Close gives up. The caller
// must know whether another client will do the work, and until then no other client can do
// it. The errors are in the order of rs.
func (c *Holds) release(ctx context.Context, rs []*release) []error {
	end := ctx
	if slices.ContainsFunc(rs, func(r *release) bool { return r.terms.Done }) {
		end = c.Closed()
	}
	limit, cancel := c.AtLeastGrace(ctx, end)
	defer cancel()
	for _, r := range rs {
		if !r.isBegun() {
			r.begin(limit, core.ErrReleased)
		}
	}
	return finishAll(limit, rs)
}

// finishAll finishes the releases in parallel, each by a write of its own.
func finishAll(limit context.Context, rs []*release) []error {
	errs := make([]error, len(rs))
	inParallel(len(rs), func(i int) { errs[i] = rs[i].finish(limit) })
	return errs
}

// GiveBack frees locks whose callers have left, within the release grace.
func (c *Holds) GiveBack(held []acquire.Holding) {
	rs := each(held, func(h acquire.Holding) *release { return h.(*Lock).newRelease() })
	_ = c.release(EndedContext(), rs) // the errors are reported as events
}

// GiveBack frees a lock whose caller has left.
func (h *Lock) GiveBack() {
	_ = h.c.release(context.Background(), []*release{h.newRelease()}) // the error is reported as an event
}

// release is one call's release of one lock. If a lock has several releases, only one of
// them sends requests at a time.
type release struct {
	h      *Lock
	terms  Terms
	effort *inflight.Effort // limits the requests in flight; nil if there is no limit
	again  bool             // the release repeats a failed release; it makes a single attempt and has no caller
	handle *Handle          // the handle to end, if others share the grant; nil if the grant is to end

	// Fields of a release that sends requests, set by open:
	limit context.Context    // context of the call; no request begins after it has ended
	ctx   context.Context    // context of the requests
	cut   context.CancelFunc // function that ends ctx, which cancels requests without an answer; otherwise it need not be called
	done  chan struct{}
	err   error // error of the release; valid once done is closed

	// Fields of a release that may send requests, set while it is freeing.r:
	started decide.Instant
	refused bool // the last request was permanently refused, so a repetition is of little use
}

// newRelease returns a release with the terms of the last release or, if there was none,
// with the terms of the acquisition.
func (h *Lock) newRelease() *release {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.release != nil {
		return &release{h: h, terms: h.release.terms}
	}
	return &release{h: h, terms: Terms{Delete: h.want.Delete}}
}

// begin ends the trust with the given cause, and begins the release. It returns false if
// the lock had ended before.
func (r *release) begin(limit context.Context, cause error) bool {
	r.h.lease.Look()
	return r.beginUnseen(limit, cause)
}

// beginUnseen does what begin does, without reading the clock.
func (r *release) beginUnseen(limit context.Context, cause error) bool {
	r.open(limit)
	if r.h.endWith(cause, r) {
		return true
	}
	r.done = nil
	return false
}

// open prepares the release so that other calls can wait for it.
func (r *release) open(limit context.Context) {
	r.limit, r.done = limit, make(chan struct{})
	r.ctx, r.cut = context.WithCancel(context.WithoutCancel(limit))
}

// isBegun reports whether this release has begun. If the lock had ended before, begin does
// not begin the release, but repeat may.
func (r *release) isBegun() bool { return r.done != nil }

// finish frees the key of a release that has begun, or drops the handle of a shared grant.
// If the lock had ended before, the key may still be held: see repeat.
func (r *release) finish(limit context.Context) error {
	if !r.isBegun() {
		return r.repeat(limit)
	}
	if r.handle == nil && !r.ended() {
		r.send(limit)
	}
	r.drop(limit)
	return r.wait(limit)
}

// send frees the key once no commit of the lock is in progress.
func (r *release) send(limit context.Context) {
	r.h.c.Detach(func() {
		_, leave := takeTurns(limit, []*Lock{r.h})
		defer leave()
		r.free()
	})
}

// drop forgets the handle that the release ends, and ends the release. If that was the last
// handle of the grant, drop begins another release in the background. That release frees the
// key, and then this release ends.
func (r *release) drop(limit context.Context) {
	switch c := r.h.c; {
	case r.handle == nil || r.ended():
	case r.handle.drop():
		c.Detach(func() { r.end(c.release(limit, []*release{{h: r.h, terms: r.terms}})[0]) })
	default:
		r.end(nil)
	}
}

// end ends the release with err.
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

// failed reports whether the release has ended and the grant may still be current.
func (r *release) failed() bool { return r.ended() && !freed(r.err) }

// wait waits for a release that has begun, and returns its error.
func (r *release) wait(limit context.Context) error {
	if unknown := attempts.Await(limit, r.done, r); unknown != nil {
		return r.h.c.UnknownOutcome("release", r.h.key, unknown)
	}
	return r.err
}

// Answered reports whether all requests of the release have been answered and no more will
// be sent, because the release has no time left.
func (r *release) Answered() bool { return r.limit.Err() != nil && r.tried().Answered() }

// LastErr returns the error of the last attempt that has ended.
func (r *release) LastErr() error { return r.tried().LastErr() }

// tried returns the attempts of the lock's releases, if this one may send requests now.
// Otherwise it returns none.
func (r *release) tried() *attempts.Sequence[releaseAttempt] {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	if f := r.h.freeing; f != nil && f.r == r {
		return &f.tried
	}
	return &attempts.Sequence[releaseAttempt]{}
}

// repeat frees the key of a lock that had ended before this call, if the key may still be
// held. It waits for a release in progress, or begins one.
func (r *release) repeat(limit context.Context) error {
	h := r.h
	cause := h.Ended()
	if errors.Is(cause, core.ErrDetached) {
		return cause
	}
	why, lost := core.LossOf(h.lease.Cause())
	if lost && why.SeenGone() {
		return cause // the grant is no longer current, so there is nothing to release
	}
	for {
		current := h.currentRelease(limit, r)
		if current == r {
			r.send(limit)
		}
		err := current.wait(limit)
		switch {
		case current != r && current.failed() && limit.Err() == nil:
			continue // try again, with a request of this call
		case lost && current.ended():
			return cause
		case r.terms.Done && err == nil:
			return h.missingMark()
		}
		return err
	}
}

// currentRelease returns the release that is in progress or has freed the key. If there is
// none, it begins next. If the release in progress has no caller, or its caller has no time
// left, it is cut short.
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
