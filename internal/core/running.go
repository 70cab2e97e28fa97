package core

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Running counts the calls and goroutines for which a client's Close waits. It is safe for
// concurrent use.
//
//	open ── Close is called: no call begins ──► closing ── all calls have ended ──► closed
type Running struct {
	Closing context.Context // cancelled with ErrClosed when Close is called
	Closed  context.Context // cancelled with ErrClosed when Close ends; the client begins no request after that

	calls Calls      // calls and goroutines that have not ended
	mu    sync.Mutex // held by Enter and BeginClose; never held across I/O

	close context.CancelCauseFunc // cancels Closing; called with mu locked, so that Enter counts no call after the cancellation
	end   context.CancelCauseFunc // cancels Closed
}

// NewRunning returns the Running of a client that is not closed.
func NewRunning() *Running {
	r := &Running{}
	r.Closing, r.close = context.WithCancelCause(context.Background())
	r.Closed, r.end = context.WithCancelCause(context.Background())
	return r
}

// Enter counts a call for which Close must wait, and returns true. If Close has been
// called, Enter does not count the call, and returns false.
func (r *Running) Enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.IsClosing() {
		return false
	}
	r.calls.Begin()
	return true
}

// Leave must be called at the end of each call that Enter has counted. Close then no longer waits
// for that call.
func (r *Running) Leave() { r.calls.End() }

// Detach runs fn on a new goroutine. Close waits until fn has returned.
func (r *Running) Detach(fn func()) {
	r.calls.Begin()
	go func() {
		defer r.Leave()
		deepen()
		fn()
	}()
}

// deepen grows the stack of a new goroutine to the size that requests of the SDK need. Without
// deepen, the stack would grow in steps, and each step would copy all frames.
//
//go:noinline
func deepen() {
	var frame [24 << 10]byte
	runtime.KeepAlive(&frame)
}

// IsClosing reports whether Close has been called. If Acquire is granted a lock afterwards, Acquire
// must release it itself. If Resume resumes a lock afterwards, the lock is not released, and its
// lease expires.
func (r *Running) IsClosing() bool { return r.Closing.Err() != nil }

// UntilClosing returns a copy of ctx that is also cancelled, with ErrClosed, when Close is
// called. Retries with this context do not delay Close.
func (r *Running) UntilClosing(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.Closing, func() { cancel(ErrClosed) })
	return out, func() {
		stop()
		cancel(context.Canceled)
	}
}

// BeginClose cancels the context Closing, unless an earlier call has cancelled it. It returns true if
// this call has cancelled the context. In that case, the caller must later call EndClose.
func (r *Running) BeginClose() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.IsClosing() {
		return false
	}
	r.close(ErrClosed)
	return true
}

// EndClose cancels the context Closed.
func (r *Running) EndClose() { r.end(ErrClosed) }

// WaitIdle waits until all counted calls and goroutines have ended, or until limit is cancelled.
func (r *Running) WaitIdle(limit context.Context) { r.calls.Wait(limit) }

// Calls counts calls that have not returned. The zero Calls is ready for use. It is safe for
// concurrent use.
type Calls struct {
	mu   sync.Mutex // guards the fields below
	n    int
	idle chan struct{} // closed when all calls have returned; nil if no goroutine waits for that
}

// Begin counts a call. The call counts as not returned until End is called.
func (c *Calls) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// End must be called at the end of each call that Begin has counted.
func (c *Calls) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	if c.n == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// AreOver reports whether all counted calls have returned.
func (c *Calls) AreOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n == 0
}

// Wait waits until all counted calls have returned. It returns false if limit is cancelled first.
func (c *Calls) Wait(limit context.Context) bool {
	c.mu.Lock()
	if c.n > 0 && c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle // nil if all calls have returned
	c.mu.Unlock()
	if idle == nil {
		return true
	}
	select {
	case <-idle:
		return true
	case <-limit.Done():
		return c.AreOver()
	}
}

// Call calls fn, unless ctx is done or the client is closed. Close cancels the context that fn
// receives, and waits until fn returns. Errors name the call by op and key.
func (e *Env) Call(ctx context.Context, op string, key protocol.Key, fn func(context.Context) error) error {
	if ctx.Err() != nil {
		return e.Errorf(op, key, "%w", attempts.Cause(ctx))
	}
	if !e.Enter() {
		return e.AfterClose(op, key)
	}
	defer e.Leave()
	ctx, stop := e.UntilClosing(ctx)
	defer stop()
	return fn(ctx)
}

// AtLeastGrace returns a context that has the values of ctx, but not its cancellation. The result
// is cancelled once the context "end" has been cancelled and ReleaseGrace has passed since the call
// of AtLeastGrace.
func (e *Env) AtLeastGrace(ctx, end context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	began := e.Now()
	stop := context.AfterFunc(end, func() {
		attempts.Wait(out, durations.Less(e.ReleaseGrace, e.Now().Mono-began.Mono))
		cancel(attempts.Cause(end))
	})
	return out, func() {
		stop()
		cancel(context.Canceled)
	}
}

// AwaitGrace waits until the channel "done" is closed, but no longer than ReleaseGrace.
func (e *Env) AwaitGrace(done <-chan struct{}) {
	grace := time.NewTimer(e.ReleaseGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
	}
}

// goesOn is the type of the context key under which GoesOn stores a value.
type goesOn struct{}

// GoesOn returns a copy of ctx that marks a call as the continuation of an earlier call for the
// partition key. DynamoDB has answered requests of the earlier call. So if IAM now denies a
// request, the denial may be temporary, and the call retries.
func GoesOn(ctx context.Context, partition string) context.Context {
	return context.WithValue(ctx, goesOn{}, partition)
}

// IsGoingOn reports whether ctx, or a parent of ctx, is a result of GoesOn for the key. A lock's
// context inherits this mark from the call that acquired the lock, but the mark does not apply to
// other keys.
func IsGoingOn(ctx context.Context, key protocol.Key) bool {
	return ctx.Value(goesOn{}) == key.Partition
}
