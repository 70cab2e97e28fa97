package hold

import (
	"context"
	"slices"
	"sync"

	"github.com/leasehold-go/leasehold/internal/seek"
)

// Group is several handles under one context. Code that serves one and several handles is written
// for a Group.
type Group struct {
	c       *Client
	handles []*Handle // in order of first mention
	ctx     *lockContext
}

// NewGroup returns a group whose context has the values of ctx, but not its end.
func NewGroup(ctx context.Context, handles []*Handle) Group {
	g := Group{c: handles[0].h.c, handles: handles}
	g.ctx, _ = bind(context.WithoutCancel(ctx), handles...)
	return g
}

// Group is the group of this handle alone.
func (l *Handle) Group() Group { return Group{c: l.h.c, handles: []*Handle{l}, ctx: l.ctx} }

// Context ends when the first of the locks does.
func (g *Group) Context() context.Context { return g.ctx }

// Err is the first error of the locks, nil while all are trusted.
func (g *Group) Err() error { return g.handles[0].h.naming(g.ctx.ended()) }

// ended returns the error with which a grant of the group has ended, as its handle reports it.
func (g *Group) ended(h *Lock) error {
	return g.handles[slices.IndexFunc(g.handles, func(l *Handle) bool { return l.h == h })].ended()
}

// Bind returns a copy of ctx that ends with the first of the locks too.
func (g *Group) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return bind(ctx, g.handles...)
}

// locks returns the grants, in order of first mention.
func (g *Group) locks() []*Lock {
	locks := make([]*Lock, len(g.handles))
	for i, l := range g.handles {
		locks[i] = l.h
	}
	return locks
}

// inOrder returns the grants in the order in which several keys are taken: commits of
// several locks take their turns in it too.
func (g *Group) inOrder() []*Lock {
	return slices.SortedFunc(slices.Values(g.locks()), compareLocks)
}

func holdsOf(rs []*release) []*Lock {
	holds := make([]*Lock, len(rs))
	for i, r := range rs {
		holds[i] = r.h
	}
	return holds
}

// release ends the trust in all the locks and frees their keys. It takes at least
// ReleaseGrace if it has to, however soon ctx ends. One that stores a mark takes until the
// lease has ended or Close has given up. Nobody else can do the work before that, and its
// caller must know whether somebody will. Errors are in the order of rs.
func (c *Client) release(ctx context.Context, rs []*release) []error {
	end := ctx
	if slices.ContainsFunc(rs, func(r *release) bool { return r.terms.Done }) {
		end = c.Closed()
	}
	limit, cancel := c.AtLeastGrace(ctx, end)
	defer cancel()
	return c.releaseWithin(limit, rs)
}

func (c *Client) releaseWithin(limit context.Context, rs []*release) []error {
	for _, r := range rs {
		r.claim(limit)
	}
	return c.freeClaimed(limit, rs)
}

// freeClaimed frees the keys that were claimed, each by a write of its own, side by side.
// Those of locks that had ended before are released as well, and handles that share their
// grants are dropped.
func (c *Client) freeClaimed(limit context.Context, rs []*release) []error {
	for _, r := range rs {
		if r.isBegun() && r.handle == nil {
			c.Detach(func() {
				_, leave := takeTurns(limit, []*Lock{r.h})
				defer leave()
				r.free()
			})
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
func (c *Client) GiveBack(held []seek.Holding) {
	rs := make([]*release, len(held))
	for i, h := range held {
		rs[i] = h.(*Lock).newRelease()
	}
	_ = c.release(endedContext(), rs) // reported as events
}

// inParallel calls fn for each of 0 to n-1 and waits for all. One alone needs no other
// goroutine.
func inParallel(n int, fn func(i int)) {
	if n == 1 {
		fn(0)
		return
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}
