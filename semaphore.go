package leasehold

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

func init() { bridge.NewSemaphore = (*Client).newSemaphore }

// semaphore is a key with n permits. Package semaphore is its door, and documents the
// methods.
type semaphore struct {
	c   *Client
	key Key
	all []Key      // of as many permits as there can be
	row *permitRow // stores how many there are; nil: the layout has none

	mu      sync.Mutex // guards what follows; never held across I/O
	n       int
	agreed  bool           // n was read from the row
	asOf    decide.Instant // when the request that read n began, or the write of n was answered
	changed chan struct{}  // closed when n changes
}

func (c *Client) newSemaphore(key string, n int) (bridge.Semaphore[*Lock, AcquireOption, Key, Record], error) {
	s := &semaphore{c: c, key: Key{Partition: key}, n: n, changed: make(chan struct{})}
	if err := s.checkNumber(n); err != nil {
		return nil, err
	}
	proto, ok := c.proto.(protocol.Counting)
	if !ok {
		return nil, c.unsupported("semaphores")
	}
	if key == "" || c.isSession(s.key) {
		return nil, fmt.Errorf("leasehold: semaphore %v in table %s: the key is empty, or a session's: choose another", s.key, c.cfg.Table)
	}
	for i := range protocol.MostPermits {
		permit := Key(proto.PermitKey(key, i))
		if _, err := c.checkKey("semaphore", permit); err != nil {
			return nil, err
		}
		s.all = append(s.all, permit)
	}
	if rows := proto.PermitRows(); rows != nil {
		s.row = &permitRow{c, rows, Key(rows.Key(key))}
	}
	return s, nil
}

func (s *semaphore) checkNumber(n int) error {
	if n < 1 || n > protocol.MostPermits {
		return fmt.Errorf("leasehold: semaphore %v in table %s: %d permits: from 1 to %d", s.key, s.c.cfg.Table, n, protocol.MostPermits)
	}
	return nil
}

func (s *semaphore) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	want, err := s.request(opts)
	if err != nil {
		return nil, err
	}
	if err := s.ended(ctx); err != nil {
		return nil, err
	}
	if want.reentrant {
		if lock, err := s.share(ctx, opts); lock != nil || err != nil {
			return lock, err
		}
	}
	asking, cancel := ctx, func() {} // for the row
	if want.NoWait {
		asking, cancel = withinTry(ctx)
	}
	defer func() { cancel() }()
	began := s.c.now()
	if err := s.agree(asking, want.Manual); err != nil {
		s.c.emitGaveUp(ctx, s.key, began, 0, err)
		return nil, err
	}
	for {
		n, _ := s.number()
		lock, err := s.seek(ctx, opts)
		if want.Watch { // that may have taken a lease
			cancel()
			asking, cancel = withinTry(ctx) //nolint:fatcontext // made of ctx each time, not of itself
		}
		switch {
		case errors.Is(err, errResized) && ctx.Err() == nil,
			errors.Is(err, ErrDeadlock) && s.hasGrown(asking, n, 0),
			errors.Is(err, ErrHeld) && want.NoWait && s.hasGrown(asking, n, s.every()):
			continue
		case errors.Is(err, errResized):
			err = s.ended(ctx)
			s.c.emitGaveUp(ctx, s.key, began, 0, err)
		}
		if err != nil {
			return nil, err
		}
		within, err := s.confirm(asking, lock, want.Manual)
		if within {
			return lock, nil
		}
		if released := lock.Release(ctx); err == nil && errors.Is(released, ErrClosed) {
			err = released
		}
		if err != nil {
			s.c.emitGaveUp(ctx, s.key, began, 0, err)
			return nil, err
		}
	}
}

// ended returns the error of a call whose context has ended, nil before that.
func (s *semaphore) ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return s.c.errorf("acquire a permit of", s.key, "%w", context.Cause(ctx))
}

func (s *semaphore) Do(ctx context.Context, fn func(ctx context.Context, permit *Lock) error, opts ...AcquireOption) error {
	if fn == nil {
		return &notRunError{s.c.errorf("do", s.key, "the function is nil")}
	}
	permit, err := s.Acquire(ctx, opts...)
	if err != nil {
		return &notRunError{err}
	}
	return permit.Do(ctx, fn)
}

func (s *semaphore) Holders(ctx context.Context) ([]Record, error) {
	n, _ := s.number()
	if s.row != nil {
		asking, cancel := withinTry(ctx)
		defer cancel()
		p, err := s.row.read(asking, "holders")
		if err != nil {
			return nil, s.notOurs(err)
		}
		if p.Version != "" {
			n = p.Most
		}
	}
	return s.c.heldPermits(ctx, s.all[:n])
}

func (s *semaphore) Keys() []Key {
	n, _ := s.number()
	return slices.Clone(s.all[:n])
}

func (s *semaphore) Resize(ctx context.Context, n int) error {
	if err := s.checkNumber(n); err != nil {
		return err
	}
	if s.row == nil {
		return s.c.unsupported("Resize")
	}
	asOf := s.c.now()
	p, wrote, err := s.row.resize(ctx, n)
	if err != nil {
		return s.notOurs(err)
	}
	if wrote {
		asOf = s.c.now() // a read that began before this may have seen the row as it was
	}
	s.follow(p.N, asOf)
	return nil
}

// request reads the options, and refuses those that permits do not have.
func (s *semaphore) request(opts []AcquireOption) (request, error) {
	want := request{Want: seek.Want{Timing: s.c.timing}}
	if err := noneNil(s.c, "acquire", s.key, opts); err != nil {
		return want, err
	}
	for _, o := range opts {
		o.toAcquire(&want)
	}
	switch {
	case want.IfExists:
		return want, s.c.unsupported("IfExists together with a semaphore")
	case want.Key.Sort != "":
		return want, s.c.unsupported("WithSortKey together with a semaphore")
	}
	return want, nil
}

// withinTry bounds the retries of a call that does not wait.
func withinTry(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, seek.TryFor, fmt.Errorf("gave up after %v", seek.TryFor))
}

// number returns how many permits this process knows of, and a channel that is closed
// when that changes.
func (s *semaphore) number() (int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.changed
}

// follow records the number that there is as of an instant. If that of a later one has
// been recorded, nothing changes.
func (s *semaphore) follow(n int, asOf decide.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agreed && asOf.Mono < s.asOf.Mono {
		return
	}
	s.agreed, s.asOf = true, asOf
	if n != s.n {
		s.n = n
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// agree compares n with the stored number, or stores it. It does so once for each
// semaphore.
func (s *semaphore) agree(ctx context.Context, manual bool) error {
	s.mu.Lock()
	n, agreed := s.n, s.agreed
	s.mu.Unlock()
	if agreed || s.row == nil {
		return nil
	}
	began := s.c.now()
	p, created, err := s.stored(ctx, n, manual)
	if err != nil {
		return err
	}
	s.mu.Lock()
	agreed = s.agreed
	s.mu.Unlock()
	if !agreed && p.N != n && !created {
		return &PermitsError{Table: s.c.cfg.Table, Key: s.key, Stored: p.N, Asked: n}
	}
	s.follow(p.N, began)
	return nil
}

// stored reads how many permits there are, and stores n if nobody has.
func (s *semaphore) stored(ctx context.Context, n int, manual bool) (p protocol.Permits, created bool, err error) {
	p, err = s.row.read(ctx, "acquire")
	if err == nil && p.Version == "" {
		p, created, err = s.row.create(ctx, n, manual)
	}
	return p, created, s.notOurs(err)
}

// share returns another handle on one of the permits that ctx holds; nil if it
// holds none.
func (s *semaphore) share(ctx context.Context, opts []AcquireOption) (*Lock, error) {
	for _, key := range s.all {
		h := heldKeysOf(ctx).find(s.c, key)
		if h == nil || h.want.Mode != protocol.ModePlain {
			continue
		}
		wants, err := s.c.newRequests([]Key{key}, opts)
		if err == nil {
			err = h.refuses(wants[0])
		}
		if err != nil {
			return nil, err
		}
		return h.share(ctx, wants[0])
	}
	return nil, nil
}

// errResized ends a wait because the number of permits has changed: the wait starts
// again.
var errResized = errors.New("leasehold: semaphore resized")

// seek acquires one of the permits, in random order: callers at the same time should
// rarely try the same one.
func (s *semaphore) seek(ctx context.Context, opts []AcquireOption) (*Lock, error) {
	shuffled := rand.New(rand.NewPCG(math.Float64bits(s.c.chance()), 0))
	n, changed := s.number()
	keys := slices.Clone(s.all[:n])
	shuffled.Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	ctx, end := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(ctx, changed, end)
	}()
	lock, err := s.c.AcquireAny(ctx, keys, opts...)
	end(context.Canceled)
	<-watched
	if errors.Is(err, ErrHeld) {
		return nil, fmt.Errorf("leasehold: all %d permits of %v are held: %w", n, s.key, err)
	}
	return lock, err
}

// every is about how often the row is read while all permits are held.
func (s *semaphore) every() time.Duration { return decide.Times(s.c.cfg.PollMax, 10) }

// watch ends a wait with errResized once n has changed. It reads the row now and then,
// for all who wait. A waiter that starts again loses its place in the local lines, so it
// does so only after a change.
func (s *semaphore) watch(ctx context.Context, changed <-chan struct{}, end context.CancelCauseFunc) {
	if s.row == nil {
		return
	}
	age := s.age() // short waits, one after the other, learn of a change as well
	for {
		wait := decide.Scale(s.every(), 0.5+s.c.chance())
		t := time.NewTimer(max(wait-age, s.c.cfg.PollMin))
		age = 0
		select {
		case <-changed:
			t.Stop()
			end(errResized)
			return
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		s.reread(ctx, s.every()/2)
	}
}

// age is how long ago n was what the row says.
func (s *semaphore) age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c.now().Mono - s.asOf.Mono
}

// reread reads the row, unless that was done within the last while.
func (s *semaphore) reread(ctx context.Context, while time.Duration) {
	if s.row == nil || s.age() < while {
		return
	}
	began := s.c.now()
	if p, err := s.row.read(ctx, "acquire"); err == nil && p.Version != "" {
		s.follow(p.N, began)
	}
}

// hasGrown reports whether there are more permits than the n that a call has met, none
// of which it may have. Such a call does not wait, so watch tells it nothing.
func (s *semaphore) hasGrown(ctx context.Context, n int, while time.Duration) bool {
	s.reread(ctx, while)
	now, _ := s.number()
	return now > n
}

// confirm reads how many permits there are after one was granted. If a Resize has
// removed that permit before, it is given back. So no permit is granted after a Resize
// that the Resize has removed.
func (s *semaphore) confirm(ctx context.Context, lock *Lock, manual bool) (within bool, err error) {
	if s.row == nil {
		return true, nil
	}
	ctx, cancel := lock.Bind(ctx)
	defer cancel()
	began := s.c.now()
	n, _ := s.number()
	p, _, err := s.stored(ctx, n, manual)
	switch {
	case err == nil:
		s.follow(p.N, began)
		return slices.Contains(s.all[:p.N], lock.Key()), nil
	case errors.Is(err, ErrLost): // meanwhile: no caller has had it
		return false, nil
	}
	return false, err
}

// notOurs explains the error of a row that cannot be read.
func (s *semaphore) notOurs(err error) error {
	if !errors.Is(err, ErrRecord) {
		return err
	}
	return fmt.Errorf("leasehold: what is stored under %v in table %s is not a semaphore: choose another key if it is in use: %w",
		s.key, s.c.cfg.Table, err)
}
