package hold

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/lease"
)

// Handle is the share of one call in a grant: it has a context and warnings of its own.
// The grant is released with its last handle.
type Handle struct {
	// Of is the object that the handle is a part of; hold does not use it.
	Of any

	// Once is set if the handle was acquired with Once or Every: its end determines whether
	// the work is done.
	Once bool

	h      *Lock
	ctx    *lockContext
	cancel context.CancelCauseFunc

	closed   bool             // released while other handles share the grant; h.mu guards it
	warnings []*lease.Warning // h.mu guards them
}

// Warning is a function to call before trust ends, when less than Left of it remains.
type Warning struct {
	Left time.Duration
	Call func()
}

// Lock is the grant.
func (l *Handle) Lock() *Lock { return l.h }

// Context ends when the lock is lost, released, detached or its client closed.
func (l *Handle) Context() context.Context { return l.ctx }

// Err returns nil while the lock is trusted, and then what ended it.
func (l *Handle) Err() error { return l.h.naming(l.ctx.ended()) }

// ended returns how the grant has ended for this handle: with core.ErrReleased if the handle was
// released before. It is nil while the grant lasts.
func (l *Handle) ended() error {
	if l.h.Ended() == nil {
		return nil
	}
	return l.Err()
}

// TrustedUntil returns the time when trust ends if no renewal succeeds, by the wall clock.
func (l *Handle) TrustedUntil() time.Time {
	left := l.h.lease.Remaining()
	if l.Err() != nil { // however long the lease would have lasted
		left = min(left, 0)
	}
	return l.h.c.Wall().Add(left).Round(0)
}

// add makes l one more handle. Its context is under values, which has no end.
func (h *Lock) add(values context.Context, l *Handle) {
	l.h = h
	l.ctx, l.cancel = newLockContext(values, h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handles = append(h.handles, l)
}

// Share makes l one more handle on the same grant.
func (h *Lock) Share(ctx context.Context, l *Handle, warnings []Warning) error {
	h.add(context.WithoutCancel(ctx), l)
	err := h.Ended()
	if err == nil && h.c.IsClosing() { // Close may not have seen the handle
		err = core.ErrClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		err = h.lease.Cause()
	}
	if err != nil {
		err = h.naming(err)
		h.dropHandle(l)
		l.cancel(err)
		return err
	}
	l.warn(warnings)
	return nil
}

// dropHandle forgets a handle that has ended. h.mu is held.
func (h *Lock) dropHandle(l *Handle) {
	h.handles = slices.DeleteFunc(h.handles, func(o *Handle) bool { return o == l })
}

// warn has the warnings given that were asked for with a handle. h.mu is held, or
// nobody else has the handle yet.
func (l *Handle) warn(asked []Warning) {
	for _, w := range asked {
		l.warnings = append(l.warnings, l.h.lease.Warn(w.Left, w.Call))
	}
}

// leave ends this handle, if others share the grant, and reports whether it did, or
// whether that was done before. Until drop it counts as a sharer.
func (l *Handle) leave() (left, before bool) {
	l.h.mu.Lock()
	if l.closed || l.h.lease.Cause() != nil || len(l.h.handles) == 1 {
		defer l.h.mu.Unlock()
		return false, l.closed
	}
	l.closed = true
	for _, w := range l.warnings {
		w.Cancel()
	}
	l.h.mu.Unlock()
	l.cancel(core.ErrReleased)
	return true, false
}

// drop forgets a handle that has left, and reports whether it was the last.
func (l *Handle) drop() (last bool) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.h.dropHandle(l)
	return len(l.h.handles) == 0
}

// leavesMark reports whether another handle on the grant determines whether the work is
// done.
func (l *Handle) leavesMark() bool {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	return slices.ContainsFunc(l.h.handles, func(o *Handle) bool { return o != l && o.Once && !o.closed })
}

// isShared reports whether other handles share the grant.
func (l *Handle) isShared() bool {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	return len(l.h.handles) > 1
}

// BeginWork counts a function in Do, which Close awaits, unless the lock has
// ended.
func (l *Handle) BeginWork() error {
	l.h.mu.Lock()
	l.h.working++ // before asking: Close first ends the contexts, then waits for the functions
	l.h.mu.Unlock()
	err := l.Err()
	if err != nil {
		l.EndWork()
	}
	return err
}

// EndWork ends what BeginWork began.
func (l *Handle) EndWork() {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.h.working--
	if l.h.working == 0 && l.h.idle != nil {
		close(l.h.idle)
		l.h.idle = nil
	}
}
