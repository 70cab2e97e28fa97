package line

import "time"

// Waiter is a place in the line of a key.
type Waiter[K comparable, C any, G comparable, H any] struct {
	Key    K
	Caller C
	Wishes

	turns chan Turn[K, C, G, H]
	held  chan *H
	left  bool // it stands in line no more; Lines.mu guards it
}

// Wishes are how a waiter wants its turn: if not to wait until it is handed the
// key.
type Wishes struct {
	NoWait       bool // but to be told who holds the key, once that is known
	OneOfSeveral bool // it seeks the key itself: it holds none while it waits for another
}

// Turn is the turn of a waiter: to seek the key, or to hold it.
type Turn[K comparable, C any, G comparable, H any] struct {
	Of      *Waiter[K, C, G, H]
	Granted G             // the key, handed over; zero: it is to be sought
	Delay   time.Duration // for so long other processes go first
}

// NewWaiter returns a waiter that stands in no line yet, and gets its turn on
// turns. That has room for one turn of each waiter that it is given to; nil
// makes one for this waiter alone.
func (l *Lines[K, C, G, H]) NewWaiter(key K, caller C, wishes Wishes, turns chan Turn[K, C, G, H]) *Waiter[K, C, G, H] {
	if turns == nil {
		turns = make(chan Turn[K, C, G, H], 1)
	}
	return &Waiter[K, C, G, H]{Key: key, Caller: caller, Wishes: wishes, turns: turns, held: make(chan *H, 1)}
}

// Turn gets the waiter's turn, once.
func (w *Waiter[K, C, G, H]) Turn() <-chan Turn[K, C, G, H] { return w.turns }

// Held gets the holder instead, if the waiter does not want to wait.
func (w *Waiter[K, C, G, H]) Held() <-chan *H { return w.held }
