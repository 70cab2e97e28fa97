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
	"fmt"
	"slices"
	"sync"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// Semaphore is a key with n permits. Each permit is an ordinary lock, and at most n are
// held at a time. It is safe for concurrent use.
type Semaphore struct {
	locks *leasehold.Client
	in    inside
	c     *seek.Client
	key   leasehold.Key
	all   []leasehold.Key // of as many permits as there can be
	row   *row            // stores how many there are; nil: the layout has none

	mu    sync.Mutex // guards known; never held across I/O
	known number
}

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
	in := bridge.Inside(locks).(inside)
	s := &Semaphore{
		locks: locks, in: in, c: in.Seeking(), key: leasehold.Key{Partition: key},
		known: number{n: n, changed: make(chan struct{})},
	}
	if err := s.checkNumber(n); err != nil {
		return nil, err
	}
	proto, ok := s.c.Proto.(protocol.Counting)
	if !ok {
		return nil, in.Unsupported("semaphores")
	}
	if key == "" || protocol.IsSessionKey(proto, protocol.Key(s.key)) {
		return nil, fmt.Errorf("leasehold: semaphore %v in table %s: the key is empty, or a session's: choose another", s.key, s.table())
	}
	if err := in.CheckPrefix(s.key); err != nil {
		return nil, err
	}
	for i := range protocol.MostPermits {
		permit := proto.PermitKey(key, i)
		if err := proto.CheckKey(proto.Complete(permit)); err != nil {
			return nil, fmt.Errorf("leasehold: semaphore %v in table %s: %w", leasehold.Key(permit), s.table(), err)
		}
		s.all = append(s.all, leasehold.Key(permit))
	}
	if rows := proto.PermitRows(); rows != nil {
		s.row = &row{in, s.c, rows, rows.Key(key)}
	}
	return s, nil
}

// Do acquires a permit, calls fn and releases the permit. It is Acquire and Lock.Do in
// one. An error from before fn was called matches leasehold.ErrNotRun.
func (s *Semaphore) Do(ctx context.Context, fn func(ctx context.Context, permit *leasehold.Lock) error, opts ...leasehold.AcquireOption) error {
	return s.in.Do(ctx, s.key, func() (*leasehold.Lock, error) { return s.Acquire(ctx, opts...) }, fn)
}

// Keys returns the keys of the permits, as many as this process knows of: n of them
// until the first Acquire, and then as many as are stored.
func (s *Semaphore) Keys() []leasehold.Key { return slices.Clone(s.all[:s.number().n]) }

func (s *Semaphore) table() string { return s.c.Requests.Table }
