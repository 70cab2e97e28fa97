package leasehold

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/hold"
)

// Lock is one grant of one key. Its methods are safe for concurrent use, and
// none of them can change a later grant of the key. The zero Lock is of no use.
type Lock struct {
	c *Client
	h hold.Handle
}

// Key returns the key.
func (l *Lock) Key() Key { return Key(l.h.Lock().Key()) }

// Token returns the fencing token: above 0, and greater than that of every
// earlier grant of the key by leasehold, as long as the record is kept. It fits a
// signed 64-bit column and a JSON number.
func (l *Lock) Token() int64 { return l.h.Lock().Token() }

// Context returns a context that ends when the lock is lost, released, detached
// or its client closed. The cause is a *LostError, ErrReleased, ErrDetached or
// ErrClosed. It has the values of Acquire's context, but neither its end nor a
// deadline.
//
// Its Err and Done read the clock, so they are right immediately after a pause
// of the process. A context that package context derives from it ends only when a
// timer of the runtime has fired. Bind returns one that reads the clock too.
func (l *Lock) Context() context.Context { return l.h.Context() }

// Err returns nil while the lock is trusted, and then context.Cause(l.Context()), with
// the key and the table.
func (l *Lock) Err() error { return l.h.Err() }

// Bind returns a copy of ctx that ends when ctx or the lock does, whichever is
// first. Call cancel when the work is done.
func (l *Lock) Bind(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	g := l.h.Group()
	return g.Bind(ctx)
}

// Record returns a copy of the record as this grant wrote it last. Nothing is
// sent.
func (l *Lock) Record() Record { return recordOf(l.h.Lock().Record()).clone() }

// Data returns a copy of the record's data as this grant wrote or found it, nil
// if there is none. Nothing is sent.
func (l *Lock) Data() []byte { return slices.Clone(l.h.Lock().Record().Data) }

// TookOver returns the last record of the dead holder, if this grant took the key
// over from one: its work may be half done.
func (l *Lock) TookOver() (Record, bool) {
	dead := l.h.Lock().Dead()
	if dead == nil {
		return Record{}, false
	}
	return recordOf(*dead).clone(), true
}

// TrustedUntil returns when trust ends if no renewal succeeds, by the wall clock.
// After the lock has ended it is in the past.
func (l *Lock) TrustedUntil() time.Time { return l.h.TrustedUntil() }

// Do calls fn with Bind(ctx), and releases when fn returns, panics or exits. A
// panic goes on once the release is answered, or Config.ReleaseGrace has passed.
//
// Nil means: fn returned nil and the lock was held until then. If the lock was
// lost the error matches ErrLost, and fn's error as well. A release that failed,
// without an answer or refused, is logged and reported as an event but not
// returned: the work is done, and a caller who took the error for a failure of
// fn would do it twice. The key is free once the lease has run out. Of a lock that
// was acquired with Once or Every it is returned: the record may not say that the
// work is done, and then it is done again.
//
// If the lock has ended already, fn is not called and the error matches
// ErrNotRun.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, lock *Lock) error) error {
	return l.group().Do(ctx, func(ctx context.Context, _ *Group) error { return fn(ctx, l) })
}

// newLock is a handle that nothing has been granted to yet.
func newLock(c *Client) *Lock {
	l := &Lock{c: c}
	l.h.Of = l
	return l
}

// lockOf is the lock whose handle it is.
func lockOf(h *hold.Handle) *Lock { return h.Of.(*Lock) }

// warned are the warnings for l that a caller has asked for.
func (l *Lock) warned(asked []warning) []hold.Warning {
	warnings := make([]hold.Warning, len(asked))
	for i, w := range asked {
		warnings[i] = hold.Warning{Left: w.left, Call: func() { w.fn(l) }}
	}
	return warnings
}
