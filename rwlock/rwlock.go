package rwlock

import (
	"context"
	"errors"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/recipe"
)

// RWLock is a key that one writer or up to 100 readers hold. A waiting writer
// keeps new readers out. Native layout only.
type RWLock struct {
	locks recipe.Client
	key   string
}

// New returns the lock under key. It sends nothing. The error matches
// errors.ErrUnsupported if the client's layout is not layout.Native.
func New(locks *leasehold.Client, key string) (*RWLock, error) {
	if locks == nil {
		return nil, errors.New("rwlock: the client is nil")
	}
	l := &RWLock{locks: recipe.Of(locks), key: key}
	return l, l.locks.CheckReadWrite(key)
}

// AcquireRead waits until no writer has or awaits the key. Inside the context
// of a lock of this key it is leasehold.ErrDeadlock, unless leasehold.Reentrant
// is given, which shares that grant, a writer's too.
func (l *RWLock) AcquireRead(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return l.acquire(ctx, false, opts)
}

// AcquireWrite waits until every reader and the writer before have gone.
// Tokens grow with every grant, of readers too. Inside the context of a lock of
// this key it is leasehold.ErrDeadlock; leasehold.Reentrant shares the grant of
// a writer, never that of a reader.
func (l *RWLock) AcquireWrite(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return l.acquire(ctx, true, opts)
}

func (l *RWLock) acquire(ctx context.Context, write bool, opts []leasehold.AcquireOption) (*leasehold.Lock, error) {
	lock, err := l.locks.AcquireReadWrite(ctx, l.key, write, opts)
	if err != nil {
		return nil, err
	}
	return lock.(*leasehold.Lock), nil
}
