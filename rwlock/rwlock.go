package rwlock

import (
	"context"
	"errors"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// RWLock is a key that one writer or up to 100 readers hold. A waiting writer
// keeps new readers out. Native layout only. It is safe for concurrent use.
type RWLock struct {
	locks inside
	key   string
}

// inside is what a read/write lock needs of what is inside a client.
type inside interface {
	// AcquireSide acquires key as a reader or as the writer.
	AcquireSide(ctx context.Context, key string, mode protocol.Mode, opts []leasehold.AcquireOption) (*leasehold.Lock, error)

	// Do acquires a lock, calls fn and releases it. An error from before fn was called
	// matches leasehold.ErrNotRun.
	Do(ctx context.Context, key leasehold.Key, acquire func() (*leasehold.Lock, error), fn func(context.Context, *leasehold.Lock) error) error
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
	in := bridge.Inside(locks).(inside)
	if _, err := in.AcquireSide(ended, key, protocol.ModeRead, opts); !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return &RWLock{in, key}, nil
}

// AcquireRead acquires the key for reading, together with other readers. It waits
// while a writer holds the key or waits for it, and while 100 readers hold it.
//
// A key is either for Client.Acquire or for AcquireRead and AcquireWrite: the first
// grant makes its record, and calls of the other kind return a *leasehold.RecordError;
// the command leasehold forget starts over.
// The error matches errors.ErrUnsupported for options that set data or attributes, and
// for DeleteOnRelease. If ctx belongs to a lock of the key the error is
// leasehold.ErrDeadlock, unless Reentrant is given, which shares that grant, also a
// writer's. Otherwise it is as Client.Acquire.
func (l *RWLock) AcquireRead(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return l.locks.AcquireSide(ctx, l.key, protocol.ModeRead, opts)
}

// AcquireWrite acquires the key for writing, alone. It waits until neither a writer nor
// a reader holds it, and keeps new readers out meanwhile. Tokens grow with every
// grant, those of readers included. If ctx belongs to a lock of the key the error is
// leasehold.ErrDeadlock; Reentrant shares the grant of a writer, never that of a reader.
// Otherwise it is as AcquireRead.
func (l *RWLock) AcquireWrite(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return l.locks.AcquireSide(ctx, l.key, protocol.ModeWrite, opts)
}

// DoRead calls fn with a read lock. It is AcquireRead and Lock.Do in one. An error from
// before fn was called matches leasehold.ErrNotRun.
func (l *RWLock) DoRead(ctx context.Context, fn func(ctx context.Context, lock *leasehold.Lock) error, opts ...leasehold.AcquireOption) error {
	return l.locks.Do(ctx, leasehold.Key{Partition: l.key}, func() (*leasehold.Lock, error) { return l.AcquireRead(ctx, opts...) }, fn)
}

// DoWrite is DoRead with the write lock.
func (l *RWLock) DoWrite(ctx context.Context, fn func(ctx context.Context, lock *leasehold.Lock) error, opts ...leasehold.AcquireOption) error {
	return l.locks.Do(ctx, leasehold.Key{Partition: l.key}, func() (*leasehold.Lock, error) { return l.AcquireWrite(ctx, opts...) }, fn)
}
