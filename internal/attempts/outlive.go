package attempts

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrUnknownOutcome says that a write may have been applied, or may be yet.
var ErrUnknownOutcome = errors.New("leasehold: outcome unknown")

// A write outlives its caller: what becomes of it must be known to whoever writes next. So
// the request under way goes on when its caller's time is over, and Close waits for it.

// Sent is what has been sent of a write.
type Sent interface {
	// Answered reports whether nothing is under way, or without an answer. A write whose
	// time is over then returns at once: it begins no other.
	Answered() bool

	// LastErr is why the last request that has ended did nothing; nil: it did, or none has.
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

// Await waits until done is closed, or limit ends. unknown says why nobody knows then what
// becomes of what was sent; nil: done is closed, maybe at the same time.
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

// Latest is what has been sent of a write in parts, of which one at a time is under way.
// Before the first nothing has been, nor will be once its time is over.
type Latest struct{ part atomic.Pointer[Sent] }

// Begin makes part the one that is under way.
func (l *Latest) Begin(part Sent) { l.part.Store(&part) }

// Answered is as of the part under way.
func (l *Latest) Answered() bool {
	part := l.part.Load()
	return part == nil || (*part).Answered()
}

// LastErr is as of the part under way.
func (l *Latest) LastErr() error {
	if part := l.part.Load(); part != nil {
		return (*part).LastErr()
	}
	return nil
}
