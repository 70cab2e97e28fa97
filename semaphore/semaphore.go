// Package semaphore lets at most n holders hold a key at a time. It uses only the public API
// of package leasehold.
//
//	gpu, err := semaphore.New(locks, "gpu", 3)
//	...
//	permit, err := gpu.Acquire(ctx)
//
// The permits are n keys, KEY/0 to KEY/n-1, and Acquire acquires one of them with
// Client.AcquireAny. Each permit is an ordinary lock, so semaphores work in every layout.
// Permits have the properties of locks: a context that is cancelled when the permit is lost,
// takeover from a dead holder, and Do, Commit, Guards, Break and listings as for any key.
//
// # Number of permits
//
// The caller sets the number of permits, and the table does not store it. Give all processes the
// same number: if their numbers differ, the number of holders can reach the largest of them.
// After all processes have changed to a smaller number n, the new limit applies as soon as the
// permits KEY/n and above have been released.
//
// # What it costs
//
// A permit costs as much as a lock: two writes. The keys are tried in order, beginning with a
// random key. Each key that another process holds may cost a rejected write: at most n-1 in all. A
// key that this process knows to be held costs no write. A waiter polls as often as the waiter of a
// lock, and reads all permits in one request. In the native layout, a waiter also joins the queues
// of two permits. It joins one more queue after a second, and another each time its wait has
// doubled. To join a queue costs one write. Because of the queues, processes receive permits
// roughly in the order in which they began to wait. Goroutines of one client receive permits in the
// order of their calls.
//
// # Limits
//
// Each permit has its own tokens. Fence with Commit or Guards, not by comparing tokens of
// two permits.
package semaphore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/leasehold-go/leasehold"
)

// MostPermits is the largest number of permits of a Semaphore: DynamoDB reads at most 100
// items in one request (API reference, BatchGetItem).
const MostPermits = 100

// Semaphore is a key with n permits: at most n holders hold it at a time. It is safe for
// concurrent use.
type Semaphore struct {
	client *leasehold.Client
	keys   []leasehold.Key // one key for each permit
}

// New returns the semaphore with n permits under key. n is from 1 to MostPermits. New sends
// no request.
func New(client *leasehold.Client, key string, n int) (*Semaphore, error) {
	switch {
	case client == nil:
		return nil, errors.New("semaphore: the client is nil: pass what leasehold.New returned")
	case key == "":
		return nil, errors.New("semaphore: the key is empty: name one")
	case n < 1 || n > MostPermits:
		return nil, fmt.Errorf("semaphore: %d permits of %q: use 1 to %d", n, key, MostPermits)
	}
	keys := make([]leasehold.Key, n)
	for i := range keys {
		keys[i].Partition = fmt.Sprintf("%s/%d", key, i)
	}
	return &Semaphore{client, keys}, nil
}

// Acquire acquires a permit, and waits while all permits are held. With leasehold.NoWait it returns
// ErrHeld instead. It has the options and errors of Client.AcquireAny. If ctx belongs to a permit,
// Acquire acquires another permit or, with leasehold.Reentrant, shares that permit's grant.
func (s *Semaphore) Acquire(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	// The keys are tried in order, beginning with a random key, so that fewer clients try
	// the same key at the same time.
	first := rand.IntN(len(s.keys))
	return s.client.AcquireAny(ctx, slices.Concat(s.keys[first:], s.keys[:first]), opts...)
}

// Do calls fn with a permit. It combines Acquire and Lock.Do. An error that occurs before
// fn is called matches leasehold.ErrNotRun.
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
