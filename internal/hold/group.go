package hold

import (
	"context"
	"slices"
	"sync"
)

// Group is one or more handles with a common context. Methods for one handle use a Group of
// that handle, so that the same code serves one handle and several.
type Group struct {
	c       *Holds
	handles []*Handle // handles in the order in which callers named the keys
	ctx     *lockContext
}

// NewGroup returns a group whose context has the values of ctx, but not its cancellation.
func NewGroup(ctx context.Context, handles []*Handle) Group {
	g := Group{c: handles[0].h.c, handles: handles}
	g.ctx, _ = bind(context.WithoutCancel(ctx), handles...)
	return g
}

// Group returns a group of this handle alone.
func (l *Handle) Group() Group { return Group{c: l.h.c, handles: []*Handle{l}, ctx: l.ctx} }

// Context returns a context that is cancelled as soon as one of the locks ends.
func (g *Group) Context() context.Context { return g.ctx }

// Err returns nil while all locks are trusted. Afterwards it returns the error of the lock that
// ended the group's context.
func (g *Group) Err() error { return g.handles[0].h.naming(g.ctx.ended()) }

// Bind returns a copy of ctx that is also cancelled as soon as one of the locks ends.
func (g *Group) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return bind(ctx, g.handles...)
}

// locks returns the lock of each handle, in the order of the handles.
func (g *Group) locks() []*Lock { return each(g.handles, (*Handle).Lock) }

// inOrder returns the grants sorted by key. Keys are acquired in this order, and commits
// lock the grants' mutexes in this order.
func (g *Group) inOrder() []*Lock {
	return slices.SortedFunc(slices.Values(g.locks()), compareLocks)
}

// Each commit and release of a lock holds the lock's mutex h.committing. So they never conflict,
// and none fails because another has changed the record. A renewal waits for a commit in progress,
// but at most for a quarter of the remaining trust.

// takeTurns sorts holds, and locks the mutex "committing" of each lock in this order, which
// prevents deadlocks. If limit is done first, "late" is the lock whose mutex was not available.
// Otherwise it is nil. The caller must call "leave" in both cases.
func takeTurns(limit context.Context, holds []*Lock) (late *Lock, leave func()) {
	slices.SortFunc(holds, compareLocks)
	taken := 0
	leave = func() {
		for _, h := range holds[:taken] {
			h.committing.Unlock()
		}
	}
	for ; taken < len(holds); taken++ {
		if h := holds[taken]; !h.committing.Lock(limit) {
			return h, leave
		}
	}
	return nil, leave
}

func compareLocks(a, b *Lock) int { return a.key.Compare(b.key) }

// each calls fn with every element of a slice. It returns the results in the same order.
func each[T, R any](all []T, fn func(T) R) []R {
	results := make([]R, len(all))
	for i, one := range all {
		results[i] = fn(one)
	}
	return results
}

// inParallel calls fn with each number from 0 to n-1, each call in a goroutine of its own,
// and waits for all calls. A single call runs on the caller's goroutine.
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
