// Package ctxmutex provides a mutex whose Lock also returns when a context ends.
package ctxmutex

import "context"

// Mutex is held by one goroutine at a time. It is a channel, so that a goroutine can also
// lock it in a select, by sending to it.
type Mutex chan struct{}

// New returns an unlocked Mutex.
func New() Mutex { return make(Mutex, 1) }

// Lock blocks until it has locked m, or ctx ends. It returns false if ctx ends first: then
// the caller does not hold m.
func (m Mutex) Lock(ctx context.Context) bool {
	select {
	case m <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Unlock unlocks m for the next caller.
func (m Mutex) Unlock() { <-m }
