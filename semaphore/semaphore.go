// Package semaphore grants at most N permits at a time, on package leasehold.
//
//	gpu, err := semaphore.New(locks, "gpu", 3)
//	...
//	permit, err := gpu.Acquire(ctx)
//
// A permit is an ordinary lock, KEY/0 to KEY/N-1, with all that a lock has. A
// row under KEY itself says how many there are, and is never granted to anybody.
//
// # What it costs
//
// A permit costs one write and one consistent read, of that row, and its release
// one write. The permits are tried in random order, so each one that another
// process has may cost a write that is refused: N-1 at most, nothing for those
// that this process knows of. The first Acquire of a Semaphore reads the row once
// more, or creates it. A waiter looks at all permits by one read, as often as it
// would at a lock, and now and then at the row; it writes nothing.
//
// Holders costs two reads, Resize a read and a write.
package semaphore

import (
	"errors"

	"github.com/leasehold-go/leasehold"
)

// Semaphore is a key with N permits: Acquire, TryAcquire, Holders, Resize. It is
// safe for concurrent use.
type Semaphore = leasehold.Semaphore

// ErrPermits means that another process uses this semaphore with another n. It
// matches a *leasehold.PermitsError.
var ErrPermits = leasehold.ErrPermits

// New returns the semaphore of n permits (1 to 100) under key. It sends nothing:
// see leasehold.Client.Semaphore.
func New(locks *leasehold.Client, key string, n int) (*Semaphore, error) {
	if locks == nil {
		return nil, errors.New("semaphore: the client is nil: pass what leasehold.New returned")
	}
	return locks.Semaphore(key, n)
}
