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

// Terms are the wishes of the caller of a release.
type Terms struct {
	Delete  bool // the record goes, else it is kept, marked released
	Changes protocol.Changes
	Done    bool // what the lock was acquired for is done once, and is done: the release stores that
}

// Release frees the keys, each by a write of its own. terms are those of each handle.
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

// release frees the keys, except those whose grants other handles share: there
// it ends this handle alone.
func (g *Group) release(ctx context.Context, rs []*release) []error {
	errs := make([]error, len(rs))
	last := make([]*release, 0, len(rs))
	var at []int // indices of last
	for i, l := range g.handles {
		shared, err := l.endIfShared(rs[i].terms)
		if errs[i] = err; !shared {
			last, at = append(last, rs[i]), append(at, i)
		}
	}
	for i, err := range g.c.release(ctx, last) {
		errs[at[i]] = err
	}
	return errs
}

// Why a handle's release has not stored that the work is done.
var (
	ErrShared = errors.New("others share the grant, the last of whom can store it")
	errAlone  = errors.New("others share the grant, and none of them was acquired for that work, so it may be done again: release them before")
)

// endIfShared ends this handle, if others share its grant or it has ended before. It
// sends nothing: the error says that the changes which a release would make are not made.
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

// release ends the trust in all the locks and frees their keys. It takes at least
// ReleaseGrace if it has to, however soon ctx ends. One that stores a mark takes until the
// lease has ended or Close has given up. Nobody else can do the work before that, and its
// caller must know whether somebody will. Errors are in the order of rs.
func (c *Holds) release(ctx context.Context, rs []*release) []error {
	end := ctx
	if slices.ContainsFunc(rs, func(r *release) bool { return r.terms.Done }) {
		end = c.Closed()
	}
	limit, cancel := c.AtLeastGrace(ctx, end)
	defer cancel()
	return c.releaseWithin(limit, rs)
}

func (c *Holds) releaseWithin(limit context.Context, rs []*release) []error {
	for _, r := range rs {
		r.begin(limit)
	}
	return c.freeAll(limit, rs)
}

// freeAll frees the keys of releases that have begun, each by a write of its own, side by
// side. Those of locks that had ended before are released as well, and handles that share
// their grants are dropped.
func (c *Holds) freeAll(limit context.Context, rs []*release) []error {
	for _, r := range rs {
		if r.isBegun() && r.handle == nil {
			r.send(limit)
		}
	}
	errs := make([]error, len(rs))
	inParallel(len(rs), func(i int) {
		r := rs[i]
		if r.drop(limit); r.isBegun() {
			errs[i] = r.wait(limit)
		} else {
			errs[i] = r.repeat(limit)
		}
	})
	return errs
}

// GiveBack frees locks whose caller has left, within the release grace.
func (c *Holds) GiveBack(held []acquire.Holding) {
	rs := make([]*release, len(held))
	for i, h := range held {
		rs[i] = h.(*Lock).newRelease()
	}
	_ = c.release(endedContext(), rs) // reported as events
}

// GiveBack frees a grant whose caller has left.
func (h *Lock) GiveBack() {
	_ = h.c.release(context.Background(), []*release{h.newRelease()}) // reported as an event
}

// release is the release of one lock by one call. Of several, one at a time sends
// requests, and the others wait for it.
type release struct {
	h      *Lock
	terms  Terms
	close  bool             // it is a part of Close: the trust ends with ErrClosed
	effort *inflight.Effort // limits its requests in flight; nil for no limit
	again  bool             // it repeats a failed release, with one attempt, and has no caller
	handle *Handle          // the handle that it ends, as others share the grant; nil if it ends the grant

	// Of one that sends requests, from open on:
	limit context.Context    // context of the call; no request begins after its end
	ctx   context.Context    // context of its requests
	cut   context.CancelFunc // ends the requests without an answer; otherwise it need not be called
	done  chan struct{}
	err   error // once done is closed
	freed bool  // once done is closed: the record no longer shows the grant

	// Fields of the release that may send requests:
	started decide.Instant
	refused bool // its last request, for good: a repetition is of no use
}

// newRelease returns a release of the lock as it was agreed at its grant, or as the last
// one, which has failed.
func (h *Lock) newRelease() *release {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.release != nil {
		return &release{h: h, terms: h.release.terms}
	}
	return &release{h: h, terms: Terms{Delete: h.want.Delete}}
}

// begin ends the trust and begins the release, unless the lock had ended before.
func (r *release) begin(limit context.Context) bool {
	r.h.lease.Look()
	return r.beginUnseen(limit)
}

// beginUnseen is begin that does not read the clock.
func (r *release) beginUnseen(limit context.Context) bool {
	r.open(limit)
	cause := core.ErrReleased
	if r.close {
		cause = core.ErrClosed
	}
	if r.h.endWith(cause, r) {
		return true
	}
	r.done = nil
	return false
}

// open makes the release one that others may wait for.
func (r *release) open(limit context.Context) {
	r.limit, r.done = limit, make(chan struct{})
	r.ctx, r.cut = context.WithCancel(context.WithoutCancel(limit))
}

// isBegun reports whether the lock was held until this release began.
func (r *release) isBegun() bool { return r.done != nil }

// send frees the key once no commit of the lock is under way.
func (r *release) send(limit context.Context) {
	r.h.c.Detach(func() {
		_, leave := takeTurns(limit, []*Lock{r.h})
		defer leave()
		r.free()
	})
}

// drop forgets the handle of a release that ends a handle alone, and ends the release:
// at once or, if that handle was the last by now, when another release has freed the key.
func (r *release) drop(limit context.Context) {
	switch c := r.h.c; {
	case r.handle == nil || r.ended():
	case r.handle.drop():
		c.Detach(func() { r.end(c.release(limit, []*release{{h: r.h, terms: r.terms}})[0]) })
	default:
		r.end(nil)
	}
}

// end ends the release with err. Only an answer that shows the grant gone is final.
func (r *release) end(err error) {
	r.err, r.freed = err, freed(err)
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

// failed reports whether the release has ended and the grant may stand.
func (r *release) failed() bool { return r.ended() && !r.freed }

// wait waits for a release that has begun, and returns its error.
func (r *release) wait(limit context.Context) error {
	if unknown := attempts.Await(limit, r.done, r); unknown != nil {
		return r.h.c.UnknownOutcome("release", r.h.key, unknown)
	}
	return r.err
}

// Answered reports whether all requests of the release have been answered, and it begins
// no other, since its own time is over.
func (r *release) Answered() bool {
	tried := r.tried()
	return tried != nil && r.limit.Err() != nil && tried.Answered()
}

// LastErr returns the error of the last attempt that has ended.
func (r *release) LastErr() error {
	if tried := r.tried(); tried != nil {
		return tried.LastErr()
	}
	return nil
}

// tried returns the attempts of this release, nil if it has sent none.
func (r *release) tried() *attempts.Sequence[releaseAttempt] {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	if f := r.h.freeing; f != nil && f.r == r {
		return &f.tried
	}
	return nil
}

// repeat frees the key of a lock that had ended before this call, if it may still
// be held. It waits for the release that has begun, or is the next.
func (r *release) repeat(limit context.Context) error {
	h := r.h
	cause := h.Ended()
	if errors.Is(cause, core.ErrDetached) {
		return cause
	}
	why, lost := core.LossOf(h.lease.Cause())
	if lost && why.SeenGone() {
		return cause // nothing of ours is left to release
	}
	for {
		current := h.currentRelease(limit, r)
		if current == r {
			r.send(limit)
		}
		err := current.wait(limit)
		switch {
		case current != r && current.failed() && limit.Err() == nil:
			continue // with a request of this call's own
		case lost && current.ended():
			return cause
		case r.terms.Done && err == nil:
			return h.missingMark()
		}
		return err
	}
}

// currentRelease returns the release that is under way or has freed the key, or begins next
// if there is none. A release without a caller is cut short.
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
