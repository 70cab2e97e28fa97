package rwlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/leasehold-go/leasehold"
)

// MostReaders is the largest number of readers of an RWLock. A writer's Commit checks one
// item for each possible reader, and a transaction of DynamoDB has at most 100 items (API
// reference, TransactWriteItems).
const MostReaders = 99

// RWLock is a lock that up to n readers hold at a time, or one writer. It is safe for
// concurrent use.
type RWLock struct {
	client *leasehold.Client
	keys   []leasehold.Key
}

// New returns the lock under key for up to n readers at a time. n is from 1 to MostReaders.
// New sends no request. All clients of the key must pass the same n: a writer with a
// smaller n would not exclude all readers.
func New(client *leasehold.Client, key string, n int) (*RWLock, error) {
	switch {
	case client == nil:
		return nil, errors.New("rwlock: the client is nil: pass what leasehold.New returned")
	case key == "":
		return nil, errors.New("rwlock: the key is empty: name one")
	case n < 1 || n > MostReaders:
		return nil, fmt.Errorf("rwlock: %d readers of %s: use 1 to %d", n, strconv.Quote(key), MostReaders)
	}
	keys := make([]leasehold.Key, n)
	for i := range keys {
		keys[i].Partition = fmt.Sprintf("%s/reader/%d", key, i)
	}
	return &RWLock{client, keys}, nil
}

// AcquireRead acquires one of the n keys; other readers may hold the other keys. It waits
// while all n keys are held. With leasehold.NoWait it returns ErrHeld instead. It has the
// options and errors of Client.AcquireAny.
func (l *RWLock) AcquireRead(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	// The keys are tried in order, beginning with a random key, so that fewer clients try
	// the same key at the same time.
	first := rand.IntN(len(l.keys))
	return l.client.AcquireAny(ctx, slices.Concat(l.keys[first:], l.keys[:first]), opts...)
}

// AcquireWrite acquires all n keys. It waits until no reader and no other writer holds any
// of them. With leasehold.NoWait it returns ErrHeld instead. It has the options and errors
// of Client.AcquireAll.
func (l *RWLock) AcquireWrite(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Group, error) {
	return l.client.AcquireAll(ctx, l.keys, opts...)
}

// DoRead calls fn with a read lock. It combines AcquireRead and Lock.Do. An error that
// occurs before fn is called matches leasehold.ErrNotRun.
func (l *RWLock) DoRead(ctx context.Context, fn func(ctx context.Context, lock *leasehold.Lock) error, opts ...leasehold.AcquireOption) error {
	if fn == nil {
		return fmt.Errorf("rwlock: %w: the function is nil", leasehold.ErrNotRun)
	}
	lock, err := l.AcquireRead(ctx, opts...)
	if err != nil {
		return fmt.Errorf("%w: %w", leasehold.ErrNotRun, err)
	}
	return lock.Do(ctx, fn)
}

// DoWrite calls fn with the write lock. It combines AcquireWrite and Group.Do. An error
// that occurs before fn is called matches leasehold.ErrNotRun.
func (l *RWLock) DoWrite(ctx context.Context, fn func(ctx context.Context, group *leasehold.Group) error, opts ...leasehold.AcquireOption) error {
	if fn == nil {
		return fmt.Errorf("rwlock: %w: the function is nil", leasehold.ErrNotRun)
	}
	group, err := l.AcquireWrite(ctx, opts...)
	if err != nil {
		return fmt.Errorf("%w: %w", leasehold.ErrNotRun, err)
	}
	return group.Do(ctx, fn)
}
