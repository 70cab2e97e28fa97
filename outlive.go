package leasehold

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/leasehold-go/leasehold/internal/attempts"
)

// A write outlives its caller: what becomes of it must be known to whoever writes next. So
// the request under way goes on when its caller's time is over, and Close waits for it.

// sent is what has been sent of a write.
type sent interface {
	// Answered reports whether nothing is under way, or without an answer. A write whose
	// time is over then returns at once: it begins no other.
	Answered() bool

	// LastErr is why the last request that has ended did nothing; nil: it did, or none has.
	LastErr() error
}

// outlive runs write on a goroutine of its own, and waits for it until limit ends, after
// which it begins no request. done is closed once write has returned; unknown is as from
// await.
func (c *Client) outlive(limit context.Context, sent sent, write func()) (done <-chan struct{}, unknown error) {
	over := make(chan struct{})
	c.detach(func() {
		defer close(over)
		write()
	})
	return over, await(limit, over, sent)
}

// await waits until done is closed, or limit ends. unknown says why nobody knows then what
// becomes of what was sent; nil: done is closed, maybe at the same time.
func await(limit context.Context, done <-chan struct{}, sent sent) (unknown error) {
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
	return joined(context.Cause(limit), sent.LastErr())
}

// latest is what has been sent of a write in parts, of which one at a time is under way.
// Before the first nothing has been, nor will be once its time is over.
type latest struct{ part atomic.Pointer[sent] }

func (l *latest) begin(part sent) { l.part.Store(&part) }

func (l *latest) Answered() bool {
	part := l.part.Load()
	return part == nil || (*part).Answered()
}

func (l *latest) LastErr() error {
	if part := l.part.Load(); part != nil {
		return (*part).LastErr()
	}
	return nil
}

// unknownOutcome is the error of an operation that gives up although one of its writes
// may have been applied, or may still be, whatever the last answer was.
func (c *Client) unknownOutcome(op string, key Key, err error) error {
	return opError(op, c.cfg.Table, key, fmt.Errorf("%w: %w", ErrUnknownOutcome, err))
}

// notDone is the error of an operation whose last attempt was neither applied nor
// rejected. Nothing was done, if all attempts have been answered. limit is that of the
// operation.
func (c *Client) notDone(limit context.Context, op string, key Key, r attempts.Result[attempt], tried *attempts.Sequence[attempt]) error {
	err := joined(context.Cause(limit), r.Err)
	if r.Outcome == attempts.Unanswered || len(tried.Versions()) > 0 {
		return c.unknownOutcome(op, key, err)
	}
	return opError(op, c.cfg.Table, key, err)
}
