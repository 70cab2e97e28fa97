// Package ctxmutex is a mutex that is waited for no longer than a context lasts.
package ctxmutex

import "context"

// Mutex lets one goroutine at a time have it. As it is a channel, who waits for more than
// a context sends to it in a select, and then has it.
type Mutex chan struct{}

// New returns an unlocked Mutex.
func New() Mutex { return make(Mutex, 1) }

// Lock blocks until m is free, or ctx ends. It returns false if ctx ended first: then the
// caller does not hold m.
func (m Mutex) Lock(ctx context.Context) bool {
	select {
	case m <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Unlock gives m to the next.
func (m Mutex) Unlock() { <-m }
