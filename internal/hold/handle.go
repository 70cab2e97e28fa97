package hold

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Handle is one caller's share of a grant: it has a context and warnings of its own. The
// grant is released when its last handle is released.
type Handle struct {
	// Of is the root package's *Lock, which contains this handle. Package hold does not use
	// this field.
	Of any

	// Once is true if the handle was acquired with the option Once or Every. The release of the
	// handle may then store the done mark.
	Once bool

	Warnings []*lease.Warning // expiry warnings of this handle

	h      *Lock
	ctx    *lockContext
	closed bool // this handle was released while other handles shared the grant, and was not the last to be dropped; guarded by h.mu
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

// TrustedUntil returns the wall-clock time when the trust ends if no renewal succeeds. It reads the
// wall clock first: a pause of the process before the other readings makes the result earlier, never later.
func (l *Handle) TrustedUntil() time.Time {
	wall, left := l.h.c.Wall(), l.h.lease.Remaining()
	if l.Err() != nil { // trust has ended even if the lease has time left
		left = min(left, 0)
	}
	return wall.Add(left).Round(0)
}

// add adds l to the handles of the grant, and starts the warnings of l. The context of l inherits
// the values of parent, a context that is never cancelled. The caller must hold h.mu, unless no
// other goroutine can use the lock yet.
func (h *Lock) add(parent context.Context, l *Handle) {
	l.h = h
	l.ctx = newLockContext(parent, &boundLock{by: h, outer: boundLockOf(parent)}, func() error { return core.Public(h.lease.Ended()) })
	h.handles = append(h.handles, l)
	for _, w := range l.Warnings {
		h.lease.Warn(w)
	}
}

// Share adds l to the handles of the grant. It does not read the clock: the caller has just done so.
func (h *Lock) Share(ctx context.Context, l *Handle) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.lease.Cause()
	if err == nil && h.c.IsClosing() { // Close may have ended the contexts of all earlier handles, and would never end the context of this new handle
		err = core.ErrClosed
	}
	if err != nil {
		return h.naming(err)
	}
	h.add(context.WithoutCancel(ctx), l)
	return nil
}

// leave ends this handle if other handles share the grant. The result "left" is true if this call
// has ended it. The result "before" is true if an earlier call had ended it. Until drop is called,
// the handle still counts as sharing the grant.
func (l *Handle) leave() (left, before bool) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	if l.closed || l.h.lease.Cause() != nil || len(l.h.handles) == 1 {
		return false, l.closed
	}
	l.closed = true
	for _, w := range l.Warnings {
		l.h.lease.Unwarn(w)
	}
	l.ctx.cancel(core.ErrReleased)
	return true, false
}

// drop removes a handle that the method leave has ended. It reports whether this was the grant's
// last handle. The grant then ends with this handle, so a later release of the handle waits until
// the key is free.
func (l *Handle) drop() (last bool) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.h.handles = slices.DeleteFunc(l.h.handles, func(o *Handle) bool { return o == l })
	last = len(l.h.handles) == 0
	l.closed = !last
	return last
}

// leavesMark reports whether the grant has another open handle that was acquired with Once or
// Every. This handle's release could not store the done mark, because other handles share the
// grant. The release of that other handle may store it.
func (l *Handle) leavesMark() bool {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	return slices.ContainsFunc(l.h.handles, func(o *Handle) bool { return o != l && o.Once && !o.closed })
}

// BeginWork records that a function passed to Do begins, so that Close waits for it. It
// returns an error if the lock has ended.
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

// EndWork records that a function passed to Do has returned.
func (l *Handle) EndWork() { l.h.working.End() }

// lockContext is the context of a lock. Its methods read the clock, so they notice an expired lease
// even if the process was paused. It wraps an ordinary cancel context, which package context finds:
// a derived context then needs no goroutine.
type lockContext struct {
	context.Context
	cancel context.CancelCauseFunc
	over   func() error // reads the clock; returns the error of the first lock that has ended, or nil
	held   *boundLock
}

// boundLock is one lock that a context belongs to: the context was derived from the lock's own
// context, or from a result of Bind. The field "outer" links to the next lock that the context
// belongs to.
type boundLock struct {
	by    *Lock
	bound context.Context // the context that was passed to Bind; nil for the lock's own context
	outer *boundLock
}

type boundLockKey struct{}

func boundLockOf(ctx context.Context) *boundLock {
	held, _ := ctx.Value(boundLockKey{}).(*boundLock)
	return held
}

// Of returns the lock of key that ctx belongs to. It returns nil if ctx belongs to no lock
// of that key, or if the lock is no longer held.
func (c *Holds) Of(ctx context.Context, key protocol.Key) *Lock {
	return c.innermost(ctx, func(h *Lock) bool { return h.key == key })
}

// Above returns a lock that ctx belongs to and that AcquireAll acquired. The key of this lock sorts
// after the given key. Above returns nil if no such lock is still held.
func (c *Holds) Above(ctx context.Context, key protocol.Key) *Lock {
	return c.innermost(ctx, func(h *Lock) bool { return h.want.InOrder && h.key.Compare(key) > 0 })
}

// innermost returns the innermost lock of this client that ctx belongs to, that is still
// held, and for which the function "fits" returns true. It returns nil if there is no such lock.
func (c *Holds) innermost(ctx context.Context, fits func(*Lock) bool) *Lock {
	for h := boundLockOf(ctx); h != nil; h = h.outer {
		if h.by.c == c && fits(h.by) && h.by.Ended() == nil {
			return h.by
		}
	}
	return nil
}

// newLockContext returns a copy of ctx that belongs to the locks in held. The copy also ends
// when one of its methods calls the function "over", and "over" returns an error.
func newLockContext(ctx context.Context, held *boundLock, over func() error) *lockContext {
	inner, cancel := context.WithCancelCause(ctx)
	return &lockContext{Context: inner, cancel: cancel, over: over, held: held}
}

// readClock reads the clock, and ends the context if one of its locks has ended or expired. So
// the context ends even before a timer, or the goroutine that ended the lock, cancels it.
func (c *lockContext) readClock() {
	if cause := c.over(); cause != nil {
		c.cancel(cause)
	}
}

func (c *lockContext) Done() <-chan struct{} {
	c.readClock()
	return c.Context.Done()
}

func (c *lockContext) Err() error {
	c.readClock()
	return c.Context.Err()
}

// Value reads the clock, too, because context.Cause calls Value before it calls Err.
func (c *lockContext) Value(key any) any {
	if key == (boundLockKey{}) {
		return c.held
	}
	c.readClock()
	return c.Context.Value(key)
}

// ended returns the cause with which the context has ended, or nil if it has not ended.
func (c *lockContext) ended() error {
	if c.Err() == nil {
		return nil
	}
	return context.Cause(c)
}

// bind returns a copy of ctx that belongs to all the locks. The copy also ends as soon as
// one lock ends.
func bind(ctx context.Context, locks ...*Handle) (*lockContext, context.CancelFunc) {
	held := boundLockOf(ctx)
	for _, l := range locks {
		held = &boundLock{by: l.h, bound: ctx, outer: held}
	}
	bound := newLockContext(ctx, held, func() error {
		for _, l := range locks {
			if err := l.Err(); err != nil {
				return err
			}
		}
		return nil
	})
	stops := make([]func() bool, len(locks))
	for i, l := range locks {
		stops[i] = context.AfterFunc(l.ctx, func() { bound.cancel(l.Err()) })
	}
	return bound, func() {
		for _, stop := range stops {
			stop()
		}
		bound.cancel(context.Canceled)
	}
}

// withoutReleaseOf returns a context for the requests of a release of holds. It ends when ctx ends,
// with one exception. If ctx is bound to a lock in holds, the release itself ends ctx before it
// sends its requests. That must not cancel the requests.
func withoutReleaseOf(ctx context.Context, holds ...*Lock) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	ends := []context.CancelFunc{func() { cancel(context.Canceled) }}
	follow := func(ctx context.Context) {
		bound := false // whether ctx is bound to a lock in holds; if not, a release that ends ctx has released another lock
		for held := boundLockOf(ctx); held != nil; held = held.outer {
			bound = bound || slices.Contains(holds, held.by)
		}
		stop := context.AfterFunc(ctx, func() {
			if cause := attempts.Cause(ctx); !bound || !errors.Is(cause, core.ErrReleased) {
				cancel(cause)
			}
		})
		ends = append(ends, func() { stop() })
	}
	follow(ctx)
	// Once the release has ended ctx, ctx hides two other events: the end of a context passed to
	// Bind, and the deadline of ctx. Both must end the new context.
	for held := boundLockOf(ctx); held != nil; held = held.outer {
		if held.bound != nil && slices.Contains(holds, held.by) {
			follow(held.bound)
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		late, end := context.WithDeadline(context.Background(), deadline)
		stop := context.AfterFunc(late, func() {
			<-ctx.Done() // the deadline has ended ctx or is just ending it; wait until the cause of ctx is set
			cause := attempts.Cause(ctx)
			if errors.Is(cause, core.ErrReleased) {
				cause = context.DeadlineExceeded
			}
			cancel(cause)
		})
		ends = append(ends, func() { stop(); end() })
	}
	return out, func() {
		for _, end := range ends {
			end()
		}
	}
}

// EndedContext returns a context that has ended. A release with this context takes at most
// ReleaseGrace, unless it stores the done mark.
func EndedContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
