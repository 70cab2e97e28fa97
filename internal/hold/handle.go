package hold

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/lease"
)

// Handle is one caller's share of a grant: it has a context and warnings of its own. The
// grant is released when its last handle is released.
type Handle struct {
	// Of is the *Lock of the root package that contains this handle. Package hold does not
	// use it.
	Of any

	// Once is true if the handle was acquired with Once or Every: its release may then store
	// the mark that the work is done.
	Once bool

	h   *Lock
	ctx *lockContext

	closed   bool             // this handle was released while other handles shared the grant; guarded by h.mu
	warnings []*lease.Warning // warnings of this handle; guarded by h.mu
}

// Lock returns the grant.
func (l *Handle) Lock() *Lock { return l.h }

// Context returns a context that ends when the lock is lost, released or detached, or its
// client closes.
func (l *Handle) Context() context.Context { return l.ctx }

// Err returns nil while the lock is trusted. Afterwards it returns the error that ended the
// trust.
func (l *Handle) Err() error { return l.h.naming(l.ctx.ended()) }

// ended returns the error with which the grant has ended for this handle, or nil while the
// grant lasts. If this handle was released before the grant ended, the error is
// core.ErrReleased.
func (l *Handle) ended() error {
	if l.h.Ended() == nil {
		return nil
	}
	return l.Err()
}

// TrustedUntil returns the time when trust ends if no renewal succeeds, by the wall clock.
func (l *Handle) TrustedUntil() time.Time {
	left := l.h.lease.Remaining()
	if l.Err() != nil { // trust has ended even if the lease has time left
		left = min(left, 0)
	}
	return l.h.c.Wall().Add(left).Round(0)
}

// add adds l to the handles of the grant, and starts the given warnings. The context of l
// inherits the values of the context that is passed as values. That context must never be
// cancelled. The caller must hold h.mu, unless no other goroutine can use the lock yet.
func (h *Lock) add(values context.Context, l *Handle, warnings []*lease.Warning) {
	l.h, l.warnings = h, warnings
	l.ctx = newLockContext(values, &boundLock{by: h, outer: boundLockOf(values)}, func() error { return core.Public(h.lease.Ended()) })
	h.handles = append(h.handles, l)
	for _, w := range warnings {
		h.lease.Warn(w)
	}
}

// Share adds l, a handle with warnings of its own, to the handles of the grant.
func (h *Lock) Share(ctx context.Context, l *Handle, warnings []*lease.Warning) error {
	h.lease.Look()
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.lease.Cause()
	if err == nil && h.c.IsClosing() { // Close may have ended the contexts of all earlier handles, and would never end the context of this one
		err = core.ErrClosed
	}
	if err != nil {
		return h.naming(err)
	}
	h.add(context.WithoutCancel(ctx), l, warnings)
	return nil
}

// leave ends this handle if other handles share the grant. left is true if this call has
// ended the handle, and before is true if an earlier call had. Until drop is called, the
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

// drop removes a handle that leave has ended. It reports whether this was the grant's last
// handle.
func (l *Handle) drop() (last bool) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.h.handles = slices.DeleteFunc(l.h.handles, func(o *Handle) bool { return o == l })
	return len(l.h.handles) == 0
}

// leavesMark reports whether another open handle of the grant was acquired with Once or
// Every. The release of that handle may then store the done mark, in place of this one.
func (l *Handle) leavesMark() bool {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	return slices.ContainsFunc(l.h.handles, func(o *Handle) bool { return o != l && o.Once && !o.closed })
}

// BeginWork records that a function in Do begins, so that Close waits for it. It returns an
// error if the lock has ended.
func (l *Handle) BeginWork() error {
	// Count the function before the check: Close first ends the contexts, and then waits for
	// the functions that are counted.
	l.h.working.Begin()
	err := l.Err()
	if err != nil {
		l.EndWork()
	}
	return err
}

// EndWork records that a function in Do has returned.
func (l *Handle) EndWork() { l.h.working.End() }
