package attempts

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrUnknownOutcome is returned when a write may have been applied, or may still be applied
// later.
var ErrUnknownOutcome = errors.New("leasehold: outcome unknown")

// The client must learn the outcome of a write even if the caller has stopped waiting, because
// later writes of the client depend on that outcome. So the client does not cancel a request in
// flight when the caller's context ends, and Close waits for that request.

// Sent is the state of a write in progress.
type Sent interface {
	// Answered reports whether every request so far has had an answer. If it returns true when the
	// caller's context has ended, the write sends no further request and returns immediately.
	Answered() bool

	// LastErr returns the error of the last request that has ended. It returns nil if that
	// request succeeded, or if no request has ended.
	LastErr() error
}

// Outlive uses the function detach to run the function write on a new goroutine. It then waits as
// Await does, and returns the result of Await as the error unknown. The channel done is closed when
// write has returned. After the context limit has ended, write must send no new request.
func Outlive(limit context.Context, detach func(func()), sent Sent, write func()) (done <-chan struct{}, unknown error) {
	over := make(chan struct{})
	detach(func() {
		defer close(over)
		write()
	})
	return over, Await(limit, over, sent)
}

// Await waits until the channel done is closed, which means that the write has returned, or
// until the context limit ends. If limit ends while a request has had no answer, the outcome
// of the write is unknown, and Await returns the reason. If limit ends and every request has
// had an answer, Await waits until done is closed and returns nil.
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
// after the other. Answered returns true before the first part begins, because no request is
// unanswered then. No part may begin after the caller's context has ended.
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
