package leasehold

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/lease"
)

// Lock is one grant of one key. Its methods are safe for concurrent use, and
// none of them can change a later grant of the key. The zero Lock is of no use.
type Lock struct {
	h      *holding
	ctx    *lockContext
	cancel context.CancelCauseFunc

	closed   bool             // released while other handles share the grant; h.mu guards it
	warnings []*lease.Warning // h.mu guards them
}

// Key returns the key.
func (l *Lock) Key() Key { return l.h.key }

// Token returns the fencing token: above 0, and greater than that of every
// earlier grant of the key by leasehold, as long as the record is kept. It fits a
// signed 64-bit column and a JSON number.
func (l *Lock) Token() int64 { return l.h.token }

// Context returns a context that ends when the lock is lost, released, detached
// or its client closed. The cause is a *LostError, ErrReleased, ErrDetached or
// ErrClosed. It has the values of Acquire's context, but neither its end nor a
// deadline.
//
// Its Err and Done look at the clock, so they are right immediately after a pause
// of the process. A context that package context derives from it ends only when a
// timer of the runtime has fired. Bind returns one that looks at the clock too.
func (l *Lock) Context() context.Context { return l.ctx }

// Err returns nil while the lock is trusted, and then context.Cause(l.Context()), with
// the key and the table.
func (l *Lock) Err() error { return l.h.naming(l.ctx.ended()) }

// Bind returns a copy of ctx that ends when ctx or the lock does, whichever is
// first. Call cancel when the work is done.
func (l *Lock) Bind(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return bind(ctx, l)
}

// Record returns a copy of the record as this grant wrote it last. Nothing is
// sent.
func (l *Lock) Record() Record { return l.h.currentRecord().clone() }

// Data returns a copy of the record's data as this grant wrote or found it, nil
// if there is none. Nothing is sent.
func (l *Lock) Data() []byte { return slices.Clone(l.h.currentRecord().Data) }

// TookOver returns the last record of the dead holder, if this grant took the key
// over from one: its work may be half done.
func (l *Lock) TookOver() (Record, bool) {
	if l.h.took == nil {
		return Record{}, false
	}
	return l.h.took.clone(), true
}

// TrustedUntil returns when trust ends if no renewal succeeds, by the wall clock.
// After the lock has ended it is in the past.
func (l *Lock) TrustedUntil() time.Time {
	left := l.h.lease.Remaining()
	if l.Err() != nil { // however long the lease would have lasted
		left = min(left, 0)
	}
	return l.h.c.wall().Add(left).Round(0)
}

// Do calls fn with Bind(ctx), and releases when fn returns, panics or exits. A
// panic goes on once the release is answered, or Config.ReleaseGrace has passed.
//
// Nil means: fn returned nil and the lock was held until then. If the lock was
// lost the error matches ErrLost, and fn's error as well. A release that failed,
// without an answer or refused, is logged and reported as an event but not
// returned: the work is done, and a caller who took the error for a failure of
// fn would do it twice. The key is free once the lease has run out.
//
// If the lock has ended already, fn is not called and the error matches
// ErrNotRun.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, lock *Lock) error) error {
	return l.group().Do(ctx, func(ctx context.Context, _ *Group) error { return fn(ctx, l) })
}

// beginWork counts a function in Do, for which Close waits, unless the lock has
// ended.
func (l *Lock) beginWork() error {
	l.h.mu.Lock()
	l.h.working++ // before asking: Close first ends the contexts, then waits for the functions
	l.h.mu.Unlock()
	err := l.Err()
	if err != nil {
		l.endWork()
	}
	return err
}

// endWork ends what beginWork began.
func (l *Lock) endWork() {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.h.working--
	if l.h.working == 0 && l.h.idle != nil {
		close(l.h.idle)
		l.h.idle = nil
	}
}
