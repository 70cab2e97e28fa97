package hold

import (
	"context"
	"slices"
	"sync"
)

// Group is several handles under one context. Code that serves one and several handles is written
// for a Group.
type Group struct {
	c       *Holds
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
