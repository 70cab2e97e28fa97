// Package semaphore grants at most N permits at a time, on package leasehold.
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
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/recipe"
)

// ErrPermits means that another process uses this semaphore with another n.
var ErrPermits = errors.New("semaphore: number of permits differs")

// tryFor bounds what TryAcquire and Holders repeat that DynamoDB does not answer,
// as in package leasehold.
const tryFor = 10 * time.Second

// Semaphore is a key with N permits. It is safe for concurrent use.
type Semaphore struct {
	locks *leasehold.Client
	inner recipe.Client
	key   string
	all   []protocol.Key // of as many permits as there can be

	mu      sync.Mutex // guards what follows; never held across I/O
	n       int
	agreed  bool          // n is what the table said, at asOf
	asOf    time.Time     // when the request began that told n
	changed chan struct{} // closed when n changes
}

// New returns the semaphore of n permits (1 to 100) under key. n is stored by
// the first Acquire; where it differs later, Acquire returns ErrPermits. A
// Semaphore that has acquired once follows every Resize.
//
// With layout.DynamoDLM the permits are dynamo-dlm's own slots. No record of that
// library says how many there are, so nothing can tell that two processes count
// differently: the greatest number counts. Layouts that have neither are an
// *leasehold.UnsupportedError.
func New(locks *leasehold.Client, key string, n int) (*Semaphore, error) {
	if locks == nil {
		return nil, fmt.Errorf("semaphore: %q: the client is nil: pass what leasehold.New returned", key)
	}
	inner := recipe.Of(locks)
	if err := inRange(n); err != nil {
		return nil, fmt.Errorf("semaphore: %q in table %s: %w", key, inner.Table(), err)
	}
	all, err := inner.PermitKeys(key, protocol.MostPermits)
	if err != nil {
		return nil, err
	}
	return &Semaphore{locks: locks, inner: inner, key: key, all: all, n: n, changed: make(chan struct{})}, nil
}

func inRange(n int) error {
	if n < 1 || n > protocol.MostPermits {
		return fmt.Errorf("%d permits: from 1 to %d", n, protocol.MostPermits)
	}
	return nil
}

// Acquire waits for a permit. Its token grows per slot, not over all N: fence
// with Commit or Guards, not by comparing tokens. So do data and attributes
// belong to the slot.
//
// When ctx ends while all permits are held, the error matches
// context.Cause(ctx) and leasehold.ErrHeld, with a *leasehold.HeldError of one
// of the holders. Options mean what they do for a lock: Reentrant shares a permit
// that ctx holds; without it a second one is acquired, and leasehold.ErrDeadlock
// is returned only if ctx holds them all. IfExists and WithSortKey are refused.
func (s *Semaphore) Acquire(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	want, err := s.inner.PermitOptions(opts)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, s.failed("acquire", context.Cause(ctx))
	}
	if want.Reentrant {
		if lock, err := s.inner.SharePermit(ctx, s.all, opts); lock != nil || err != nil {
			lock, _ := lock.(*leasehold.Lock)
			return lock, err
		}
	}
	asking := ctx // about the row
	if want.NoWait {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeoutCause(ctx, tryFor, fmt.Errorf("gave up after %v", tryFor))
		defer cancel()
	}
	began := time.Now()
	if err := s.agree(asking, want.Manual); err != nil {
		s.inner.GaveUp(ctx, s.key, began, err)
		return nil, err
	}
	for {
		lock, err := s.seek(ctx, opts)
		if errors.Is(err, recipe.ErrResized) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		within, err := s.confirm(asking, lock, want.Manual)
		if within {
			return lock, nil
		}
		if released := lock.Release(ctx); err == nil && errors.Is(released, leasehold.ErrClosed) {
			err = released
		}
		if err != nil {
			s.inner.GaveUp(ctx, s.key, began, err)
			return nil, err
		}
	}
}

// TryAcquire is Acquire with leasehold.NoWait.
func (s *Semaphore) TryAcquire(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return s.Acquire(ctx, append(slices.Clip(opts), leasehold.NoWait())...)
}

// Holders reads who has permits, dead holders within their lease included, in
// order of their slots: those above n as well, after a Resize. A record that
// does not read is a *leasehold.RecordError beside the others.
func (s *Semaphore) Holders(ctx context.Context) ([]leasehold.Record, error) {
	n, _ := s.now()
	if s.inner.CountsPermits() {
		asking, cancel := context.WithTimeoutCause(ctx, tryFor, fmt.Errorf("gave up after %v", tryFor))
		defer cancel()
		p, err := s.inner.ReadPermits(asking, s.key)
		if err != nil {
			return nil, s.notOurs(err)
		}
		if p.Version != "" {
			n = p.Most
		}
	}
	records, err := s.inner.HeldPermits(ctx, s.all[:n])
	held, _ := records.([]leasehold.Record)
	return held, err
}

// Resize stores a new n for all processes. Holders above it keep their permits;
// from when it returns nil nobody is granted another one above n. Others learn
// of it with their next grant; who waits, within 20 times Config.PollMax.
// leasehold.ErrUnknownOutcome if ctx ended without an answer.
func (s *Semaphore) Resize(ctx context.Context, n int) error {
	if err := inRange(n); err != nil {
		return s.failed("resize", err)
	}
	began := time.Now()
	p, err := s.inner.ResizePermits(ctx, s.key, n)
	if err != nil {
		return s.notOurs(err)
	}
	s.mu.Lock()
	s.agreed = true
	s.mu.Unlock()
	s.follow(p.N, began)
	return nil
}

// now returns how many permits there are as far as is known, and what is closed
// when that changes.
func (s *Semaphore) now() (int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.changed
}

// follow enters what a request that began then has told, unless a later one has
// told something else.
func (s *Semaphore) follow(n int, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if began.Before(s.asOf) {
		return
	}
	s.asOf = began
	if n != s.n {
		s.n = n
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// agree compares n with what is stored, or stores it, once for a Semaphore.
func (s *Semaphore) agree(ctx context.Context, manual bool) error {
	s.mu.Lock()
	n, agreed := s.n, s.agreed
	s.mu.Unlock()
	if agreed || !s.inner.CountsPermits() {
		return nil
	}
	began := time.Now()
	p, created, err := s.stored(ctx, n, manual)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if !s.agreed && p.N != n && !created {
		s.mu.Unlock()
		return fmt.Errorf("%w: %s in table %s has %d, this process asks for %d: give all processes the same number; Resize stores a new one for all",
			ErrPermits, s.key, s.inner.Table(), p.N, n)
	}
	s.agreed = true
	s.mu.Unlock()
	s.follow(p.N, began)
	return nil
}

// stored reads how many permits there are, and stores n if nobody has.
func (s *Semaphore) stored(ctx context.Context, n int, manual bool) (p protocol.Permits, created bool, err error) {
	p, err = s.inner.ReadPermits(ctx, s.key)
	if err == nil && p.Version == "" {
		p, created, err = s.inner.CreatePermits(ctx, s.key, n, manual)
	}
	return p, created, s.notOurs(err)
}

// seek acquires one of the permits that there are, in random order: those who
// come at the same time are to meet as little as possible.
func (s *Semaphore) seek(ctx context.Context, opts []leasehold.AcquireOption) (*leasehold.Lock, error) {
	n, changed := s.now()
	keys := make([]leasehold.Key, n)
	for i := range keys {
		keys[i] = leasehold.Key(s.all[i])
	}
	for i := n - 1; i > 0; i-- {
		j := int(s.inner.Chance() * float64(i+1))
		keys[i], keys[j] = keys[j], keys[i]
	}
	ctx, end := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(ctx, changed, end)
	}()
	lock, err := s.locks.AcquireAny(ctx, keys, opts...)
	end(context.Canceled)
	<-watched
	if errors.Is(err, leasehold.ErrHeld) {
		return nil, fmt.Errorf("semaphore: all %d permits of %s are held: %w", n, s.key, err)
	}
	return lock, err
}

// watch ends a wait with recipe.ErrResized once n has changed. It reads the row now and
// then, on behalf of all who wait: to begin anew costs a waiter its place in the
// local lines, so nobody does without a change.
func (s *Semaphore) watch(ctx context.Context, changed <-chan struct{}, end context.CancelCauseFunc) {
	if !s.inner.CountsPermits() {
		return
	}
	every := s.inner.RereadPermits()
	for {
		t := time.NewTimer(time.Duration((0.5 + s.inner.Chance()) * float64(every)))
		select {
		case <-changed:
			t.Stop()
			end(recipe.ErrResized)
			return
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		began := time.Now()
		s.mu.Lock()
		known := began.Sub(s.asOf) < every/2
		s.mu.Unlock()
		if known {
			continue
		}
		if p, err := s.inner.ReadPermits(ctx, s.key); err == nil && p.Version != "" {
			s.follow(p.N, began)
		}
	}
}

// confirm reads how many permits there are once one was granted: what a Resize
// has taken away before is given back. So whoever has been granted a permit since
// a Resize has one that it left.
func (s *Semaphore) confirm(ctx context.Context, lock *leasehold.Lock, manual bool) (within bool, err error) {
	if !s.inner.CountsPermits() {
		return true, nil
	}
	ctx, cancel := lock.Bind(ctx)
	defer cancel()
	began := time.Now()
	n, _ := s.now()
	p, _, err := s.stored(ctx, n, manual)
	switch {
	case err == nil:
		s.follow(p.N, began)
		return slices.Contains(s.all[:p.N], protocol.Key(lock.Key())), nil
	case errors.Is(err, leasehold.ErrLost): // meanwhile: it was never believed in
		return false, nil
	}
	return false, err
}

// failed is the error of a call that sent nothing.
func (s *Semaphore) failed(op string, err error) error {
	return fmt.Errorf("semaphore: %s %s in table %s: %w", op, s.key, s.inner.Table(), err)
}

// notOurs says of a row that does not read what it may be.
func (s *Semaphore) notOurs(err error) error {
	if !errors.Is(err, leasehold.ErrBadRecord) {
		return err
	}
	return fmt.Errorf("semaphore: what is stored under %s in table %s is not a semaphore: choose another key if it is in use: %w",
		s.key, s.inner.Table(), err)
}
