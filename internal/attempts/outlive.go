package attempts

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrUnknownOutcome is returned when a write may have been applied, or may still be applied
// later.
var ErrUnknownOutcome = errors.New("leasehold: outcome unknown")

// Later writes of the client depend on the outcome of earlier ones. So the end of a caller's
// context does not cancel a write that is in flight, and Close waits for its answer.

// Sent is the state of a write in progress. The write may consist of several requests.
type Sent interface {
	// Answered reports whether every request so far has had an answer. If so, and the caller's
	// context has been cancelled, the write sends no further request and returns immediately.
	Answered() bool

	// LastErr returns the error of the last request that has ended, with or without an answer. It
	// returns nil if that request succeeded, or if no request has ended yet.
	LastErr() error
}

// Outlive runs the function "write" on a new goroutine, which the function "detach" starts.
// Meanwhile Outlive calls Await, and returns Await's error. The channel "done" is closed when write
// returns. Once the context "limit" is cancelled, "write" must send no new request.
func Outlive(limit context.Context, detach func(func()), sent Sent, write func()) (done <-chan struct{}, unknown error) {
	over := make(chan struct{})
	detach(func() {
		defer close(over)
		write()
	})
	return over, Await(limit, over, sent)
}

// Await waits for the end of the write, which closes the channel "done". It then returns nil. If
// the context "limit" is cancelled while a request has no answer, the outcome is unknown: Await
// returns the cause of the cancellation, joined with sent.LastErr.
func Await(limit context.Context, done <-chan struct{}, sent Sent) (unknown error) {
	select {
	case <-done:
		return nil
	case <-limit.Done():
	}
	select {
	case <-done: // done was closed before limit ended, or at the same time
		return nil
	default:
	}
	if sent.Answered() {
		<-done
		return nil
	}
	return Joined(Cause(limit), sent.LastErr())
}

// Latest implements Sent for a write that consists of several parts, which the client sends one
// after the other. Before the first part begins, no request has been sent, and Answered returns
// true. No part may begin after the caller's context has been cancelled.
type Latest struct{ part atomic.Pointer[Sent] }

// Begin makes the given part the current part.
func (l *Latest) Begin(part Sent) { l.part.Store(&part) }

// Answered reports whether every request of the current part has been answered.
func (l *Latest) Answered() bool {
	part := l.part.Load()
	return part == nil || (*part).Answered()
}

// LastErr returns the result of LastErr of the current part, or nil before the first part
// begins.
func (l *Latest) LastErr() error {
	if part := l.part.Load(); part != nil {
		return (*part).LastErr()
	}
	return nil
}
