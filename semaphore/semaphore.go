// Package semaphore grants at most N permits at a time, on package leasehold.
//
//	gpu, err := semaphore.New(locks, "gpu", 3)
//	...
//	permit, err := gpu.Acquire(ctx)
//
// A permit is an ordinary lock, KEY/0 to KEY/N-1, with all that a lock has. A
// row under KEY itself says how many there are, and is never granted to anybody.
//
// # What it costs
//
// A permit costs one write and one consistent read, of that row, and its release
// one write. The permits are tried in random order, so each one that another
// process has may cost a write that is refused: N-1 at most, nothing for those
// that this process knows of. The first Acquire of a Semaphore reads the row once
// more, or creates it. A waiter looks at all permits by one read, as often as it
// would at a lock, and now and then at the row; it writes nothing.
//
// Holders costs two reads, Resize a read and a write.
package semaphore

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/bridge"
)

// Semaphore is a key with n permits. Each permit is an ordinary lock, and at most n are
// held at a time. It is safe for concurrent use.
type Semaphore struct{ of permits }

// permits are a semaphore as the client has it.
type permits = bridge.Semaphore[*leasehold.Lock, leasehold.AcquireOption, leasehold.Key, leasehold.Record]

var newPermits = bridge.NewSemaphore.(func(*leasehold.Client, string, int) (permits, error))

// New returns the semaphore of n permits (1 to 100) under key. It sends nothing. The
// first Acquire stores n. Another process whose n differs gets a
// *leasehold.PermitsError from Acquire. A Semaphore that has acquired once follows every
// Resize.
//
// With layout.DynamoDLM the permits are dynamo-dlm's own slots. That library does not
// store how many there are, so nobody notices when two processes use different
// numbers: the greatest one counts. With a layout that has no permits, the error is a
// *leasehold.UnsupportedError.
func New(locks *leasehold.Client, key string, n int) (*Semaphore, error) {
	if locks == nil {
		return nil, errors.New("semaphore: the client is nil: pass what leasehold.New returned")
	}
	of, err := newPermits(locks, key, n)
	if err != nil {
		return nil, err
	}
	return &Semaphore{of}, nil
}

// Acquire waits for a permit. Its token grows per permit, not over all of them:
// fence with Commit or Guards, not by comparing tokens. Data and attributes belong
// to the permit, too.
//
// When ctx ends while all permits are held, the error matches context.Cause(ctx) and
// leasehold.ErrHeld, with a *leasehold.HeldError of one of the holders. If the stored
// number of permits is not that of New, it is a *leasehold.PermitsError.
//
// Options mean what they do for a lock: Reentrant shares a permit that ctx holds;
// without it a second one is acquired, and leasehold.ErrDeadlock is returned only if ctx
// holds them all. IfExists and WithSortKey are refused.
func (s *Semaphore) Acquire(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return s.of.Acquire(ctx, opts...)
}

// TryAcquire is Acquire with leasehold.NoWait.
func (s *Semaphore) TryAcquire(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return s.of.Acquire(ctx, append(slices.Clip(opts), leasehold.NoWait())...)
}

// Do acquires a permit, calls fn and releases the permit. It is Acquire and Lock.Do in
// one. An error from before fn was called matches leasehold.ErrNotRun.
func (s *Semaphore) Do(ctx context.Context, fn func(ctx context.Context, permit *leasehold.Lock) error, opts ...leasehold.AcquireOption) error {
	return s.of.Do(ctx, fn, opts...)
}

// Holders returns the records of the permits that are held, in order of the permits.
// After a Resize it includes permits above n. It reads each record once, which cannot
// tell whether a holder lives: a dead one is included until somebody else is granted
// its permit. Above n nobody is: Client.Break frees such a permit. Where records say
// when they expire, those that have expired are left out. For a record that cannot be
// read there is a *leasehold.RecordError, beside the other records.
func (s *Semaphore) Holders(ctx context.Context) ([]leasehold.Record, error) {
	return s.of.Holders(ctx)
}

// Keys returns the keys of the permits, as many as this process knows of: n of them
// until the first Acquire, and then as many as are stored.
func (s *Semaphore) Keys() []leasehold.Key { return s.of.Keys() }

// Resize stores a new n for all processes. Holders of permits above n keep them. Once
// it has returned nil, nobody is granted another permit above n. Other processes learn
// of it with their next grant; those that wait, within 20 times Config.PollMax; those
// that only try, with the first try after 10 times Config.PollMax. The error is
// leasehold.ErrUnknownOutcome if ctx ended without an answer. A layout that stores no
// number refuses it with a *leasehold.UnsupportedError.
func (s *Semaphore) Resize(ctx context.Context, n int) error { return s.of.Resize(ctx, n) }
