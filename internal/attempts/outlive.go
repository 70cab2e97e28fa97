package attempts

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrUnknownOutcome is returned when a write may have been applied, or may still be.
var ErrUnknownOutcome = errors.New("leasehold: outcome unknown")

// A write outlives its caller: the next writer must know its outcome. So the request in
// flight continues when its caller's time is over, and Close waits for it.

// Sent is the part of a write that has been sent.
type Sent interface {
	// Answered reports whether no request is in flight, or without an answer. A write whose
	// time is over then returns at once: it begins no other request.
	Answered() bool

	// LastErr returns why the last request that has ended had no effect. It returns nil if
	// it had one, or if none has ended.
	LastErr() error
}

// Outlive runs write on a goroutine of its own, which detach starts, and waits for it until
// limit ends, after which it begins no request. done is closed once write has returned;
// unknown is as from Await.
func Outlive(limit context.Context, detach func(func()), sent Sent, write func()) (done <-chan struct{}, unknown error) {
	over := make(chan struct{})
	detach(func() {
		defer close(over)
		write()
	})
	return over, Await(limit, over, sent)
}

// Await waits until done is closed, or limit ends. The error unknown is why the outcome of
// the write is then unknown. It is nil if done is closed, even if limit ends at the same
// time.
func Await(limit context.Context, done <-chan struct{}, sent Sent) (unknown error) {
	select {
	case <-done:
		return nil
	case <-limit.Done():
	}
	select {
	case <-done: // both have come
		return nil
	default:
	}
	if sent.Answered() {
		<-done
		return nil
	}
	return Joined(Cause(limit), sent.LastErr())
}

// Latest is the sent part of a write that consists of several parts, sent one at a time.
// Before the first part it counts as answered, and stays so once its time is over.
type Latest struct{ part atomic.Pointer[Sent] }

// Begin makes part the current one.
func (l *Latest) Begin(part Sent) { l.part.Store(&part) }

// Answered reports whether the part in flight has been answered.
func (l *Latest) Answered() bool {
	part := l.part.Load()
	return part == nil || (*part).Answered()
}

// LastErr returns the error of the part in flight.
func (l *Latest) LastErr() error {
	if part := l.part.Load(); part != nil {
		return (*part).LastErr()
	}
	return nil
}
