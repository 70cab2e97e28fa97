package ambiguity

import (
	"context"
	"errors"

	"github.com/leasehold-go/leasehold"
)

// keeps returns a function for a lock of another client. The function checks that the lock
// is still held, and then releases it.
func keeps(lock *leasehold.Lock) func() error {
	return func() error {
		return errors.Join(lock.Err(), lock.Renew(context.Background()), lock.Release(context.Background()))
	}
}

// asks returns a function that acquires a lock: it calls acquire with a client that has
// read nothing yet.
func asks(acquire func(ctx context.Context, x *trial, c *leasehold.Client) (*leasehold.Lock, error)) func(context.Context, *trial) (*leasehold.Lock, func() error, error) {
	return func(ctx context.Context, x *trial) (*leasehold.Lock, func() error, error) {
		lock, err := acquire(ctx, x, x.rival())
		if err != nil {
			return nil, nil, err
		}
		return lock, keeps(lock), nil
	}
}

var (
	askForJob = asks(func(ctx context.Context, _ *trial, c *leasehold.Client) (*leasehold.Lock, error) {
		return c.Acquire(ctx, "job")
	})
	askForPermit = asks(func(ctx context.Context, x *trial, c *leasehold.Client) (*leasehold.Lock, error) {
		return x.semaphore(c).Acquire(ctx)
	})
)

func askForAll(ctx context.Context, x *trial) (*leasehold.Lock, func() error, error) {
	g, err := x.rival().AcquireAll(ctx, leasehold.Keys("x", "y"))
	if err != nil {
		return nil, nil, err
	}
	longest := g.Locks()[0] // the lock that was taken over, or the first lock if none was taken over
	for _, lock := range g.Locks() {
		if _, over := lock.TookOver(); over {
			longest = lock
		}
	}
	return longest, func() error { return errors.Join(g.Err(), g.Release(context.Background())) }, nil
}
