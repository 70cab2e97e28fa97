package leasehold

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Lock is one grant of one key. Its methods are safe for concurrent use;
// none can touch a later grant of the same key. The zero Lock is of no use.
type Lock struct {
	h      *holding
	ctx    *lockContext
	cancel context.CancelCauseFunc

	closed bool // released while other handles share the grant; h.mu guards it
}

// Key returns the key.
func (l *Lock) Key() Key { return l.h.key }

// Token returns the fencing token: above 0, and greater than that of every
// earlier grant of the key by leasehold. It fits a signed 64-bit column and a
// JSON number.
func (l *Lock) Token() int64 { return l.h.token }

// Context ends, with a cause, when the lock can no longer be trusted or was
// released: *LostError, ErrReleased, ErrDetached or ErrClosed. It has the
// values of Acquire's context but not its end, and no deadline. Its Err and
// Done look at the clock, so after a pause they tell at once; a context
// derived from it with package context tells when the runtime's timer fires.
func (l *Lock) Context() context.Context { return l.ctx }

// Err is nil while the lock is trusted, then context.Cause(l.Context()).
func (l *Lock) Err() error {
	if l.ctx.Err() == nil {
		return nil
	}
	return context.Cause(l.ctx)
}

// Bind returns a copy of ctx that ends with the lock too, whichever is first.
// Call cancel when the work is done.
func (l *Lock) Bind(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return bind(ctx, l.ctx)
}

// Record returns the record as of the last write of this grant.
func (l *Lock) Record() Record { return l.h.currentRecord() }

// Data returns the record's data as of the last write of this grant. Nil:
// none.
func (l *Lock) Data() []byte { return slices.Clone(l.h.currentRecord().Data) }

// TookOver returns the dead holder's last record, if this grant took it over:
// work may lie half done.
func (l *Lock) TookOver() (Record, bool) {
	if l.h.took == nil {
		return Record{}, false
	}
	return *l.h.took, true
}

// TrustedUntil is when trust ends if no renewal succeeds.
func (l *Lock) TrustedUntil() time.Time {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	return time.Now().Add(l.h.remaining(l.h.c.now())).Round(0)
}

// Do calls fn with Bind(ctx), and releases when fn returns, panics or exits.
// A panic goes on once the release is answered, or Config.ReleaseGrace has passed.
// Nil means: fn returned nil and the lock was ours until then. If the lock
// was lost the error matches ErrLost, and fn's error as well. A release that
// failed, without an answer or refused, is logged and reported as an event, not
// returned: the work is done, and who took the error for its failure would do it
// twice. The lease frees the key.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, lock *Lock) error) (err error) {
	if err := l.begin(); err != nil {
		return &notRunError{err}
	}
	returned := false
	defer func() {
		within := ctx
		if !returned { // a panic is not held up for longer than the release may take
			within = endedContext()
		}
		// Lost before fn returned is what counts; the release that follows
		// can only add that somebody else's grant was there already.
		lost := l.lostCause()
		l.done()
		if released := l.Release(within); lost == nil && errors.Is(released, ErrLost) {
			lost = released
		}
		if lost != nil && !errors.Is(err, ErrLost) {
			err = errors.Join(err, lost)
		}
	}()
	bound, cancel := l.Bind(ctx)
	defer cancel()
	err = fn(bound, l)
	returned = true
	return err
}

// begin enters a function in Do.
func (l *Lock) begin() error {
	l.h.mu.Lock()
	l.h.working++ // before the look: Close first asks to stop, then waits for who works
	l.h.mu.Unlock()
	err := l.Err()
	if err != nil {
		l.done()
	}
	return err
}

func (l *Lock) done() {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.h.working--
	if l.h.working == 0 && l.h.quiet != nil {
		close(l.h.quiet)
		l.h.quiet = nil
	}
}

// lostCause is why the lock was lost, nil if it was not.
func (l *Lock) lostCause() error {
	if cause := l.h.ended(); errors.Is(cause, ErrLost) {
		return cause
	}
	return nil
}
