package hold

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/lease"
)

// Handle is one caller's share of a grant: it has a context and warnings of its own. The
// grant is released with its last handle.
type Handle struct {
	// Of is the object of the root package that contains the handle. Package hold does not
	// use it.
	Of any

	// Once reports whether the handle was acquired with Once or Every: its release may mark
	// the work as done.
	Once bool

	h   *Lock
	ctx *lockContext

	closed   bool             // the handle was released while other handles share the grant; guarded by h.mu
	warnings []*lease.Warning // guarded by h.mu
}

// Lock returns the grant.
func (l *Handle) Lock() *Lock { return l.h }

// Context returns a context that ends when the lock is lost, released or detached, or its
// client closes.
func (l *Handle) Context() context.Context { return l.ctx }

// Err returns nil while the lock is trusted. Afterwards it returns the error that ended the
// trust.
func (l *Handle) Err() error { return l.h.naming(l.ctx.ended()) }

// ended returns the error with which the grant has ended for this handle. It returns
// core.ErrReleased if this handle was released first, and nil while the grant lasts.
func (l *Handle) ended() error {
	if l.h.Ended() == nil {
		return nil
	}
	return l.Err()
}

// TrustedUntil returns the time when trust ends if no renewal succeeds, by the wall clock.
func (l *Handle) TrustedUntil() time.Time {
	left := l.h.lease.Remaining()
	if l.Err() != nil { // trust has ended, whatever the lease says
		left = min(left, 0)
	}
	return l.h.c.Wall().Add(left).Round(0)
}

// add adds l to the handles of the grant, and starts the given warnings. The context of l is
// derived from the context values, which must never be cancelled. The caller must hold h.mu,
// unless no other goroutine has the lock yet.
func (h *Lock) add(values context.Context, l *Handle, warnings []*lease.Warning) {
	l.h, l.warnings = h, warnings
	l.ctx = newLockContext(values, &heldKeys{by: h, outer: heldKeysOf(values)}, func() error { return core.Public(h.lease.Ended()) })
	h.handles = append(h.handles, l)
	for _, w := range warnings {
		h.lease.Warn(w)
	}
}

// Share adds l to the handles of a grant that already has other handles.
func (h *Lock) Share(ctx context.Context, l *Handle, warnings []*lease.Warning) error {
	h.lease.Look()
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.lease.Cause()
	if err == nil && h.c.IsClosing() { // Close may have ended the contexts of all handles, and would miss this one
		err = core.ErrClosed
	}
	if err != nil {
		return h.naming(err)
	}
	h.add(context.WithoutCancel(ctx), l, warnings)
	return nil
}

// leave ends this handle if other handles share the grant. left reports whether this call
// has ended the handle, and before whether an earlier call had. Until drop is called, the
// handle still counts as sharing the grant.
func (l *Handle) leave() (left, before bool) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	if l.closed || l.h.lease.Cause() != nil || len(l.h.handles) == 1 {
		return false, l.closed
	}
	l.closed = true
	for _, w := range l.warnings {
		w.Cancel()
	}
	l.ctx.cancel(core.ErrReleased)
	return true, false
}

// drop forgets a handle that has left, and reports whether it was the last one.
func (l *Handle) drop() (last bool) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.h.handles = slices.DeleteFunc(l.h.handles, func(o *Handle) bool { return o == l })
	return len(l.h.handles) == 0
}

// leavesMark reports whether another handle of the grant decides whether the work is marked
// as done.
func (l *Handle) leavesMark() bool {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	return slices.ContainsFunc(l.h.handles, func(o *Handle) bool { return o != l && o.Once && !o.closed })
}

// BeginWork counts a function in Do, so that Close waits for the function. It returns an
// error if the lock has ended.
func (l *Handle) BeginWork() error {
	l.h.working.Begin() // counted before the check: Close first ends the contexts, then waits for the functions
	err := l.Err()
	if err != nil {
		l.EndWork()
	}
	return err
}

// EndWork undoes BeginWork.
func (l *Handle) EndWork() { l.h.working.End() }
