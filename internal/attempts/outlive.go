package attempts

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrUnknownOutcome is returned when a write may have been applied, or may still be applied
// later.
var ErrUnknownOutcome = errors.New("leasehold: outcome unknown")

// A write continues after its caller has left, because the next write must know the
// outcome. So a request in flight is not cancelled when its caller has no time left, and
// Close waits for that request.

// Sent is a write in progress, as its caller sees it.
type Sent interface {
	// Answered reports whether every request so far has been answered. If so, a write that
	// has no time left returns at once, without another request.
	Answered() bool

	// LastErr returns the error of the last request that has ended. It returns nil if that
	// succeeded, or if none has ended.
	LastErr() error
}

// Outlive runs write on a goroutine that detach starts. It waits until write has returned
// or limit ends. After limit has ended, write must begin no more requests. done is closed
// once write has returned. unknown is the error that Await returns.
func Outlive(limit context.Context, detach func(func()), sent Sent, write func()) (done <-chan struct{}, unknown error) {
	over := make(chan struct{})
	detach(func() {
		defer close(over)
		write()
	})
	return over, Await(limit, over, sent)
}

// Await waits until done is closed or limit ends. If limit ends first and the outcome of
// the write is unknown, Await returns the reason. If every request has been answered, Await
// waits for done and returns nil.
func Await(limit context.Context, done <-chan struct{}, sent Sent) (unknown error) {
	select {
	case <-done:
		return nil
	case <-limit.Done():
	}
	select {
	case <-done: // done was closed at the same time as limit ended
		return nil
	default:
	}
	if sent.Answered() {
		<-done
		return nil
	}
	return Joined(Cause(limit), sent.LastErr())
}

// Latest is the progress of a write that consists of several parts, sent one at a time.
// Until the first part begins, the write counts as answered. If no part has begun when the
// write has no time left, none begins.
type Latest struct{ part atomic.Pointer[Sent] }

// Begin makes part the current one.
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
