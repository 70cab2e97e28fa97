package line

import "time"

// Waiter is a place in the line of a key.
type Waiter[K comparable, C any, G comparable, H any] struct {
	Key    K
	Caller C
	Wishes

	turns chan Turn[K, C, G, H]
	held  chan *H
	left  bool // it is not in line any more; Lines.mu guards it
}

// Wishes are how a waiter wants its turn. The zero Wishes wait until it comes, and
// accept a hand-over.
type Wishes struct {
	NoWait      bool // tell it who holds the key, once that is known
	SeeksItself bool // do not hand it the key: it must hold none while it waits for another, or must not be granted some
}

// Turn is the turn of a waiter: to acquire the key, or to hold it.
type Turn[K comparable, C any, G comparable, H any] struct {
	Of      *Waiter[K, C, G, H]
	Granted G             // the key, handed over; zero: acquire it
	Delay   time.Duration // so long, other processes go first
}

// NewWaiter returns a waiter that is not in line yet. It gets its turn on turns, which
// must have room for one turn of each waiter that uses it; nil makes a channel for this
// waiter alone.
func (l *Lines[K, C, G, H]) NewWaiter(key K, caller C, wishes Wishes, turns chan Turn[K, C, G, H]) *Waiter[K, C, G, H] {
	if turns == nil {
		turns = make(chan Turn[K, C, G, H], 1)
	}
	return &Waiter[K, C, G, H]{Key: key, Caller: caller, Wishes: wishes, turns: turns, held: make(chan *H, 1)}
}

// Turn receives the waiter's turn, once.
func (w *Waiter[K, C, G, H]) Turn() <-chan Turn[K, C, G, H] { return w.turns }

// Held receives the holder instead, with NoWait.
func (w *Waiter[K, C, G, H]) Held() <-chan *H { return w.held }
