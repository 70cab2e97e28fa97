package localqueue

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Waiter is a goroutine's place in the local queue of a key.
type Waiter[C any, G grantType] struct {
	Key    protocol.Key
	Caller C
	Wishes

	turns chan Turn[C, G]
	held  chan *protocol.Record
	left  bool // the waiter has left the queue; guarded by Queues.mu
}

// Wishes are the options of a waiter. With the zero Wishes, the waiter stays in the queue
// until its turn comes, and accepts a key that is handed over.
type Wishes struct {
	NoWait     bool // once the holder of the key is known, Queues sends it to the waiter and removes the waiter from the queue
	NoHandOver bool // no goroutine hands the key to the waiter: the waiter waits for several keys, or could not use the grant of a hand-over
}

// Turn means that a waiter may now acquire the key, or already holds it by a hand-over.
type Turn[C any, G grantType] struct {
	Of      *Waiter[C, G]
	Granted G             // grant by which the key was handed to the waiter; zero if the waiter must acquire the key
	Delay   time.Duration // how long the waiter pauses first, so that other processes can acquire the key
}

// NewWaiter returns a waiter; Join adds it to the queue. Queues sends the waiter's turn on
// turns. The channel's buffer must have room for one turn of each waiter that uses the
// channel. If turns is nil, the waiter gets a channel of its own.
func (l *Queues[C, G]) NewWaiter(key protocol.Key, caller C, wishes Wishes, turns chan Turn[C, G]) *Waiter[C, G] {
	if turns == nil {
		turns = make(chan Turn[C, G], 1)
	}
	return &Waiter[C, G]{Key: key, Caller: caller, Wishes: wishes, turns: turns, held: make(chan *protocol.Record, 1)}
}

// Turn returns the channel on which Queues sends the waiter's turn, once.
func (w *Waiter[C, G]) Turn() <-chan Turn[C, G] { return w.turns }

// Held returns the channel on which Queues sends the holder of the key if the waiter has
// set NoWait.
func (w *Waiter[C, G]) Held() <-chan *protocol.Record { return w.held }
