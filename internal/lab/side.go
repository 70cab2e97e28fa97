package lab

import (
	"context"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/rwlock"
)

// AcquireRead acquires a key for reading.
func AcquireRead(ctx context.Context, c *leasehold.Client, key string, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	rw, err := rwlock.New(c, key)
	if err != nil {
		return nil, err
	}
	return rw.AcquireRead(ctx, opts...)
}

// AcquireWrite acquires a key for writing.
func AcquireWrite(ctx context.Context, c *leasehold.Client, key string, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	rw, err := rwlock.New(c, key)
	if err != nil {
		return nil, err
	}
	return rw.AcquireWrite(ctx, opts...)
}
