// Package ctxmutex provides a mutex whose Lock also returns when a context is done.
package ctxmutex

import "context"

// Mutex is a mutual exclusion lock. It is a channel, so that a goroutine can also lock it
// in a select statement, by sending a value to it.
type Mutex chan struct{}

// New returns an unlocked Mutex.
func New() Mutex { return make(Mutex, 1) }

// Lock waits until it has locked m, and returns true. If ctx is done first, Lock returns false, and
// the caller does not hold m. If ctx is done before the call, Lock returns false even if m is
// unlocked.
func (m Mutex) Lock(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case m <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Unlock unlocks m, so that another goroutine can lock it.
func (m Mutex) Unlock() { <-m }
