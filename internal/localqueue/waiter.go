package localqueue

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Waiter is a place in the queue of a key.
type Waiter[C any, G grantType] struct {
	Key    protocol.Key
	Caller C
	Wishes

	turns chan Turn[C, G]
	held  chan *protocol.Record
	left  bool // the waiter has left the queue; guarded by Queues.mu
}

// Wishes say how a waiter wants its turn. With the zero Wishes, a waiter waits for its turn
// and accepts a hand-over.
type Wishes struct {
	NoWait      bool // once the holder is known, it is reported to the waiter, and the waiter leaves the queue
	SeeksItself bool // the waiter is never handed the key: it must hold no key while it waits for another, or may be unable to use the grant
}

// Turn is the turn of a waiter, to acquire the key or to hold it.
type Turn[C any, G grantType] struct {
	Of      *Waiter[C, G]
	Granted G             // the grant of a key that was handed over; zero if the key must be acquired
	Delay   time.Duration // how long the waiter lets other processes go first
}

// NewWaiter returns a waiter that is not in the queue yet. Its turn is sent on turns, which
// must have room for one turn of each waiter that uses it. If turns is nil, the waiter gets
// a channel of its own.
func (l *Queues[C, G]) NewWaiter(key protocol.Key, caller C, wishes Wishes, turns chan Turn[C, G]) *Waiter[C, G] {
	if turns == nil {
		turns = make(chan Turn[C, G], 1)
	}
	return &Waiter[C, G]{Key: key, Caller: caller, Wishes: wishes, turns: turns, held: make(chan *protocol.Record, 1)}
}

// Turn returns the channel that receives the waiter's turn, once.
func (w *Waiter[C, G]) Turn() <-chan Turn[C, G] { return w.turns }

// Held returns the channel that receives the holder of the key if the waiter has set
// NoWait.
func (w *Waiter[C, G]) Held() <-chan *protocol.Record { return w.held }
