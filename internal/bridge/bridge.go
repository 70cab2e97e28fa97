// Package bridge is how the packages semaphore and rwlock reach what the client does
// for them. Permits and read/write locks need what is inside the client, and have one
// door: these packages, not a second one on the client.
//
// The root sets the variables when it is initialized, which is before the packages that
// import it. Their types name types of the root, which imports this package: so they are
// of type any here, and who uses one says its type.
package bridge

import "context"

// Semaphore is what the client does for a semaphore.Semaphore, which documents it.
// The parameters are *leasehold.Lock, leasehold.AcquireOption, leasehold.Key and
// leasehold.Record.
type Semaphore[Lock, Option, Key, Record any] interface {
	Acquire(ctx context.Context, opts ...Option) (Lock, error)
	Do(ctx context.Context, fn func(ctx context.Context, permit Lock) error, opts ...Option) error
	Holders(ctx context.Context) ([]Record, error)
	Keys() []Key
	Resize(ctx context.Context, n int) error
}

// NewSemaphore makes the semaphore of n permits under key. It is a
// func(c *leasehold.Client, key string, n int) (Semaphore, error).
var NewSemaphore any

// AcquireSide acquires key as a reader or as the writer. It is a
// func(*leasehold.Client, context.Context, string, protocol.Mode, []leasehold.AcquireOption) (*leasehold.Lock, error).
var AcquireSide any
