package hold

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// lockContext is a context that reads the clock. So its state is right even after a pause
// of the process, before any timer has fired. It wraps an ordinary cancel context, which
// stores the cause. Package context attaches children to the wrapped context without a
// goroutine.
type lockContext struct {
	context.Context
	cancel context.CancelCauseFunc
	over   func() error // reads the clock, and returns the error with which a lock of the context has ended
	held   *heldKeys
}

// heldKeys lists the locks that a context belongs to, innermost first.
type heldKeys struct {
	by    *Lock
	bound context.Context // the context that was bound to the lock; nil for the lock's own context
	outer *heldKeys
}

type heldKeysKey struct{}

func heldKeysOf(ctx context.Context) *heldKeys {
	held, _ := ctx.Value(heldKeysKey{}).(*heldKeys)
	return held
}

// Of returns the lock of the given key that ctx belongs to. It returns nil if ctx belongs
// to no lock of that key that is still held.
func (c *Holds) Of(ctx context.Context, key protocol.Key) *Lock {
	return c.innermost(ctx, func(h *Lock) bool { return h.key == key })
}

// Above returns a lock that ctx belongs to and that was acquired with others in sorted
// order. In that order, its key comes after the given one. Above returns nil if no such
// lock is still held.
func (c *Holds) Above(ctx context.Context, key protocol.Key) *Lock {
	return c.innermost(ctx, func(h *Lock) bool { return h.want.InOrder && h.key.Compare(key) > 0 })
}

// innermost returns the innermost lock of this client that ctx belongs to, that is still
// held, and that fits. It returns nil if there is none.
func (c *Holds) innermost(ctx context.Context, fits func(*Lock) bool) *Lock {
	for h := heldKeysOf(ctx); h != nil; h = h.outer {
		if h.by.c == c && fits(h.by) && h.by.Ended() == nil {
			return h.by
		}
	}
	return nil
}

// newLockContext returns a copy of ctx that belongs to the locks in held. It also ends once
// over returns an error.
func newLockContext(ctx context.Context, held *heldKeys, over func() error) *lockContext {
	inner, cancel := context.WithCancelCause(ctx)
	return &lockContext{Context: inner, cancel: cancel, over: over, held: held}
}

// readClock ends the context if a lock has ended. The goroutine that ended the lock may not
// have ended this context yet.
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

// Value reads the clock too, because context.Cause begins with a call of Value.
func (c *lockContext) Value(key any) any {
	if key == (heldKeysKey{}) {
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

// bind returns a copy of ctx that belongs to all the locks, and also ends when the first of
// them ends.
func bind(ctx context.Context, locks ...*Handle) (*lockContext, context.CancelFunc) {
	held := heldKeysOf(ctx)
	for _, l := range locks {
		held = &heldKeys{by: l.h, bound: ctx, outer: held}
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

// besides returns a context that ends with ctx, unless ctx ends because one of holds is
// released. The caller of a release may pass a ctx that is bound to the lock. The release
// ends that ctx, but its requests must still be sent.
func besides(ctx context.Context, holds ...*Lock) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	ends := []context.CancelFunc{func() { cancel(context.Canceled) }}
	follow := func(ctx context.Context) {
		bound := false // if it stays false, a release that ends ctx is the release of another lock
		for held := heldKeysOf(ctx); held != nil; held = held.outer {
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
	// ctx may have ended because one of holds was released. Then two things still end the
	// new context: the deadline of ctx, and the end of the context from which ctx was made
	// by binding it to one of holds.
	for held := heldKeysOf(ctx); held != nil; held = held.outer {
		if held.bound != nil && slices.Contains(holds, held.by) {
			follow(held.bound)
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		late, end := context.WithDeadline(context.Background(), deadline)
		stop := context.AfterFunc(late, func() {
			<-ctx.Done() // ctx has ended or is just ending; wait until its cause is set
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
