// Package semaphore lets at most n hold a key at a time, on the public API of package
// leasehold.
//
//	gpu, err := semaphore.New(locks, "gpu", 3)
//	...
//	permit, err := gpu.Acquire(ctx)
//
// The permits are n keys, KEY/0 to KEY/n-1, and Acquire acquires one of them with
// Client.AcquireAny. Each is an ordinary lock, so every layout has semaphores, and what
// holds for a lock holds here: its context ends in time, a dead holder's permit is taken
// over, and Do, Commit, Guards, Break and listings work as they do for any key.
//
// # How many there are
//
// The caller says how many, and nothing stores the number. Give all processes the same
// one. Two processes with different numbers share the permits that both count, the first
// ones, and as many hold the key as the greater number says. A smaller number is in force
// once the last permit above it is released.
//
// # What it costs
//
// A permit costs what a lock costs: two writes. The keys are tried from a random one on.
// Each that another process holds may cost a rejected write: n-1 at most, none for those
// that this process knows of. A waiter reads all permits at once, as often as it would a
// lock, and writes nothing. Within one client, goroutines wait for each permit in the
// order in which they came; between processes there is no order.
//
// # Limits
//
// Tokens grow for each permit by itself, not over all of them. Fence with Commit or
// Guards, not by comparing tokens of two permits.
package semaphore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/leasehold-go/leasehold"
)

// MostPermits is the most permits that a Semaphore may have: one request of DynamoDB reads
// at most 100 items (API reference, BatchGetItem).
const MostPermits = 100

// Semaphore is a key with n permits, at most n of which are held at a time. It is safe for
// concurrent use.
type Semaphore struct {
	client *leasehold.Client
	keys   []leasehold.Key // of the permits
}

// New returns the semaphore of n permits under key, 1 to MostPermits. It sends nothing.
func New(client *leasehold.Client, key string, n int) (*Semaphore, error) {
	switch {
	case client == nil:
		return nil, errors.New("semaphore: the client is nil: pass what leasehold.New returned")
	case key == "":
		return nil, errors.New("semaphore: the key is empty: name one")
	case n < 1 || n > MostPermits:
		return nil, fmt.Errorf("semaphore: %d permits of %s: use 1 to %d", n, strconv.Quote(key), MostPermits)
	}
	keys := make([]leasehold.Key, n)
	for i := range keys {
		keys[i].Partition = fmt.Sprintf("%s/%d", key, i)
	}
	return &Semaphore{client, keys}, nil
}

// Acquire acquires a permit. It waits while all of them are held. Its lock, its options and
// its errors are those of Client.AcquireAny: in a context that holds a permit it acquires
// another one or, with leasehold.Reentrant, shares that permit.
func (s *Semaphore) Acquire(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	// Clients that begin with different keys refuse each other less often.
	first := rand.IntN(len(s.keys))
	return s.client.AcquireAny(ctx, slices.Concat(s.keys[first:], s.keys[:first]), opts...)
}

// Do calls fn with a permit. It is Acquire and Lock.Do in one. An error from before fn was
// called matches leasehold.ErrNotRun.
func (s *Semaphore) Do(ctx context.Context, fn func(ctx context.Context, permit *leasehold.Lock) error, opts ...leasehold.AcquireOption) error {
	if fn == nil {
		return fmt.Errorf("semaphore: %w: the function is nil", leasehold.ErrNotRun)
	}
	permit, err := s.Acquire(ctx, opts...)
	if err != nil {
		return fmt.Errorf("%w: %w", leasehold.ErrNotRun, err)
	}
	return permit.Do(ctx, fn)
}
