package semaphore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/seek"
)

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
	want, reentrant, err := s.request(opts)
	if err != nil {
		return nil, err
	}
	if err := s.ended(ctx); err != nil {
		return nil, err
	}
	if reentrant {
		if lock, err := s.in.Share(ctx, s.all, opts); lock != nil || err != nil {
			return lock, err
		}
	}
	asking, cancel := ctx, func() {} // for the row
	if want.NoWait {
		asking, cancel = withinTry(ctx)
	}
	defer func() { cancel() }()
	began := s.c.Now()
	if err := s.agree(asking, want.Manual); err != nil {
		s.in.GaveUp(ctx, s.key, began, err)
		return nil, err
	}
	for {
		n := s.number().n
		lock, err := s.acquireAny(ctx, opts)
		if want.Watch { // that may have taken a lease
			cancel()
			asking, cancel = withinTry(ctx) //nolint:fatcontext // made of ctx each time, not of itself
		}
		switch {
		case errors.Is(err, bridge.ErrAgain) && ctx.Err() == nil,
			errors.Is(err, leasehold.ErrDeadlock) && s.hasGrown(asking, n, 0),
			errors.Is(err, leasehold.ErrHeld) && want.NoWait && s.hasGrown(asking, n, s.every()):
			continue
		case errors.Is(err, bridge.ErrAgain):
			err = s.ended(ctx)
			s.in.GaveUp(ctx, s.key, began, err)
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
			s.in.GaveUp(ctx, s.key, began, err)
			return nil, err
		}
	}
}

// TryAcquire is Acquire with leasehold.NoWait.
func (s *Semaphore) TryAcquire(ctx context.Context, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return s.Acquire(ctx, append(slices.Clip(opts), leasehold.NoWait())...)
}

// request reads the options, and refuses those that permits do not have.
func (s *Semaphore) request(opts []leasehold.AcquireOption) (want seek.Want, reentrant bool, err error) {
	want, reentrant, err = s.in.Asked(s.key, opts)
	switch {
	case err != nil:
	case want.IfExists:
		err = s.in.Unsupported("IfExists together with a semaphore")
	case want.Key.Sort != "":
		err = s.in.Unsupported("WithSortKey together with a semaphore")
	default: // what every permit refuses must not store the number of permits before
		err = s.in.CheckRequest(s.all[0], opts)
	}
	return want, reentrant, err
}

// ended returns the error of a call whose context has ended, nil before that.
func (s *Semaphore) ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("leasehold: acquire a permit of %v in table %s: %w", s.key, s.table(), context.Cause(ctx))
}

// withinTry bounds the retries of a call that does not wait.
func withinTry(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, seek.TryFor, fmt.Errorf("gave up after %v", seek.TryFor))
}

// acquireAny acquires one of the permits, in random order: callers at the same time
// should rarely try the same one.
func (s *Semaphore) acquireAny(ctx context.Context, opts []leasehold.AcquireOption) (*leasehold.Lock, error) {
	shuffled := rand.New(rand.NewPCG(math.Float64bits(s.c.Chance()), 0))
	now := s.number()
	keys := slices.Clone(s.all[:now.n])
	shuffled.Shuffle(now.n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	ctx, end := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(ctx, now.changed, end)
	}()
	lock, err := s.locks.AcquireAny(ctx, keys, opts...)
	end(context.Canceled)
	<-watched
	if errors.Is(err, leasehold.ErrHeld) {
		if now.n == 1 {
			return nil, fmt.Errorf("leasehold: the only permit of %v is held: %w", s.key, err)
		}
		return nil, fmt.Errorf("leasehold: all %d permits of %v are held: %w", now.n, s.key, err)
	}
	return lock, err
}

// every is about how often the row is read while all permits are held.
func (s *Semaphore) every() time.Duration { return decide.Times(s.c.PollMax, 10) }

// watch ends a wait with bridge.ErrAgain once n has changed. It reads the row now and
// then, for all who wait. A waiter that starts again loses its place in the local lines, so
// it does so only after a change.
func (s *Semaphore) watch(ctx context.Context, changed <-chan struct{}, end context.CancelCauseFunc) {
	if s.row == nil {
		return
	}
	age := s.age() // short waits, one after the other, learn of a change as well
	for {
		wait := decide.Scale(s.every(), 0.5+s.c.Chance())
		t := time.NewTimer(max(wait-age, s.c.PollMin))
		age = 0
		select {
		case <-changed:
			t.Stop()
			end(bridge.ErrAgain)
			return
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		s.reread(ctx, s.every()/2)
	}
}

// confirm reads how many permits there are after one was granted. If a Resize has
// removed that permit before, it is given back. So no permit is granted after a Resize
// that the Resize has removed.
func (s *Semaphore) confirm(ctx context.Context, lock *leasehold.Lock, manual bool) (within bool, err error) {
	if s.row == nil {
		return true, nil
	}
	ctx, cancel := lock.Bind(ctx)
	defer cancel()
	began := s.c.Now()
	p, _, err := s.stored(ctx, s.number().n, manual)
	switch {
	case err == nil:
		s.follow(p.N, began)
		return slices.Contains(s.all[:p.N], lock.Key()), nil
	case errors.Is(err, leasehold.ErrLost): // meanwhile: no caller has had it
		return false, nil
	}
	return false, err
}
