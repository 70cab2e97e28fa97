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
	left  bool // it has left the queue; Queues.mu guards it
}

// Wishes are how a waiter wants its turn. The zero Wishes wait until it comes, and
// accept a hand-over.
type Wishes struct {
	NoWait      bool // report the holder to it, once it is known
	SeeksItself bool // do not hand it the key: it must hold none while it waits for another, or must not be granted some
}

// Turn is the turn of a waiter: to acquire the key, or to hold it.
type Turn[C any, G grantType] struct {
	Of      *Waiter[C, G]
	Granted G             // the key, handed over; zero if it must be acquired
	Delay   time.Duration // so long, other processes go first
}

// NewWaiter returns a waiter that is not in the queue yet. It gets its turn on turns, which
// must have room for one turn of each waiter that uses it; nil makes a channel for this
// waiter alone.
func (l *Queues[C, G]) NewWaiter(key protocol.Key, caller C, wishes Wishes, turns chan Turn[C, G]) *Waiter[C, G] {
	if turns == nil {
		turns = make(chan Turn[C, G], 1)
	}
	return &Waiter[C, G]{Key: key, Caller: caller, Wishes: wishes, turns: turns, held: make(chan *protocol.Record, 1)}
}

// Turn receives the waiter's turn, once.
func (w *Waiter[C, G]) Turn() <-chan Turn[C, G] { return w.turns }

// Held receives the holder instead, with NoWait.
func (w *Waiter[C, G]) Held() <-chan *protocol.Record { return w.held }
