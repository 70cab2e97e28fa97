// Package rwlock is a lock for up to n readers or one writer. It uses only the public API of
// package leasehold.
//
//	rw, err := rwlock.New(locks, "dataset/7", 8)
//	...
//	r, err := rw.AcquireRead(ctx)  // other readers may hold the lock, too
//	w, err := rw.AcquireWrite(ctx) // no other client holds the lock
//
// The lock is n keys, KEY/reader/0 to KEY/reader/n-1. A reader acquires one of them with
// Client.AcquireAny, and the writer acquires all of them with Client.AcquireAll. Each key is an
// ordinary lock, so read/write locks work in every layout. They have the properties of locks and
// groups: contexts that are cancelled when a lock is lost, Do, Commit, Guards, Break, and one
// record for each key in listings.
//
// A read lock also fences writes: a commit under a read lock is applied only if no writer has been
// granted the reader's key since the grant of the read lock.
//
// # What it costs
//
// A reader costs as much as a lock: two writes. If several readers arrive at the same time, two
// readers may try the same key. DynamoDB then rejects the write of the second reader, and that
// reader needs one more write, to another key. The writer pays for the grant, renewals and release
// of each of the n keys, and its Commit checks each key. So choose n no larger than the number of
// readers that you expect at the same time. While n readers hold the lock, the next reader waits.
//
// # Order of readers and writers
//
// A writer that waits for readers acquires one key after the other and keeps them, so that
// new readers find fewer and fewer keys free. For each key it waits like any waiter, together
// with readers that wait for the same key. All writers acquire the keys in the same order, so two
// writers cannot deadlock. The key of a dead holder is granted again once its lease has expired.
//
// # Limits
//
//   - A read lock cannot become a write lock: AcquireWrite inside the context of a read lock
//     returns leasehold.ErrDeadlock. Release the read lock, call AcquireWrite, and read again. Do
//     not pass leasehold.Reentrant there: two readers that both do so wait for each other.
//   - Inside the context of a read lock, pass leasehold.Reentrant to AcquireRead. Without it,
//     AcquireRead acquires a second key, and may wait for a writer that waits for the first.
//   - Each key has its own tokens, so a target outside DynamoDB can compare only tokens of the same
//     key. To fence writers, let it compare the token of the first lock in AcquireWrite's Group.
package rwlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/leasehold-go/leasehold"
)

// MostReaders is the largest number of readers of an RWLock. A writer's Commit checks one
// item for each possible reader, and a transaction of DynamoDB has at most 100 items (API
// reference, TransactWriteItems).
const MostReaders = 99

// RWLock is a lock that either up to n readers or one writer can hold at a time. It is safe for
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
		return nil, fmt.Errorf("rwlock: %d readers of %q: use 1 to %d", n, key, MostReaders)
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
