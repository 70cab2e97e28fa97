package rwlock

import (
	"context"
	"errors"

	"github.com/leasehold-go/leasehold"
)

// RWLock is a key that one writer or up to 100 readers hold. A waiting writer
// keeps new readers out. Native layout only. It is safe for concurrent use.
type RWLock struct {
	locks *leasehold.Client
	key   string
}

// New returns the lock under key. It sends nothing. The error matches
// errors.ErrUnsupported if the client's layout is not layout.Native.
func New(locks *leasehold.Client, key string) (*RWLock, error) {
	if locks == nil {
		return nil, errors.New("rwlock: the client is nil: pass what leasehold.New returned")
	}
	var opts []leasehold.AcquireOption
	if locks.Capabilities().SortKey {
		opts = append(opts, leasehold.WithSortKey("0")) // each call may name another
	}
	// Arguments are checked before ctx: with one that has ended nothing is sent.
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := locks.AcquireRead(ended, key, opts...); !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return &RWLock{locks, key}, nil
}

// AcquireRead waits until no writer has or awaits the key: see
// leasehold.Client.AcquireRead.
func (l *RWLock) AcquireRead(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return l.locks.AcquireRead(ctx, l.key, opts...)
}

// AcquireWrite waits until every reader and the writer before have gone: see
// leasehold.Client.AcquireWrite.
func (l *RWLock) AcquireWrite(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return l.locks.AcquireWrite(ctx, l.key, opts...)
}
