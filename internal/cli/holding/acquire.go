package holding

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/permits"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/pace"
	"github.com/leasehold-go/leasehold/semaphore"
)

// acquire acquires all of keys, one of them, or one of the permits that they are.
func (h *Hold) acquire(ctx context.Context, w Wanted, keys []leasehold.Key, all *allHeld) error {
	s, locks := h.seeker.store, h.seeker.locks
	h.name = w.Keys[0]
	var lock *leasehold.Lock
	var err error
	switch {
	case w.Leads:
		lock, err = h.seeker.seat.Campaign(ctx, w.Value, w.options()...)
	case len(w.Keys) == 1:
		lock, err = acquireOne(ctx, s, locks, w)
	case w.Any:
		if lock, err = locks.AcquireAny(ctx, keys, w.options()...); err == nil {
			h.name = lock.Key().Partition
		}
	default:
		if h.group, err = locks.AcquireAll(ctx, keys, w.options()...); err == nil {
			h.locks = h.group.Locks()
		}
	}
	if lock != nil {
		h.locks = []*leasehold.Lock{lock}
	}
	if all != nil && errors.Is(err, leasehold.ErrHeld) {
		err = &allHeldError{all.String(), err}
	}
	var bad *leasehold.RecordError
	if n, is := permits.In(s.Proto, err); is && errors.As(err, &bad) {
		return notALock(bad.Key.Partition, n, w.Detached)
	}
	return err
}

// acquireOne acquires the lock of a key, or one of its permits.
func acquireOne(ctx context.Context, s *store.Store, locks *leasehold.Client, w Wanted) (*leasehold.Lock, error) {
	key := w.Keys[0]
	if w.Permits <= 1 {
		lock, err := acquireLock(ctx, s, locks, w)
		if _, is := permits.In(s.Proto, err); !is || !w.Counted {
			return lock, err
		} // it may have been resized to one
	}
	counted, err := semaphore.New(locks, key, w.Permits)
	if err != nil {
		return nil, err
	}
	lock, err := counted.Acquire(ctx, w.options()...)
	var differs *leasehold.PermitsError
	if errors.As(err, &differs) {
		err = misuse.Errorf("%s has %s, but -p says %d: use -p %d, as its other users do, or change it for all: leasehold semaphore resize %s %[3]d",
			wording.Name(key), permits.Count(differs.Stored), differs.Asked, differs.Stored, wording.ShellWord(key))
	}
	if r, is := permits.LockIn(s.Proto, err); is {
		err = misuse.Errorf("%s is a lock that is %s, not a semaphore: use another key for -p, or once it is free start over with leasehold forget %s",
			wording.Name(key), permits.HeldNow(r), wording.ShellKey(r.Key))
	}
	return lock, err
}

func acquireLock(ctx context.Context, s *store.Store, locks *leasehold.Client, w Wanted) (*leasehold.Lock, error) {
	if s.File != "" {
		turn, leave := takeTurn(s.File, w.Keys[0])
		defer leave()
		ctx = pace.With(ctx, turn)
	}
	return locks.Acquire(ctx, w.Keys[0], w.options()...)
}

// notALock says what the key of n permits is to those who take it for a lock.
func notALock(key string, n int, detached bool) error {
	what := fmt.Sprintf("%s is a semaphore with %s, not a lock: ", wording.Name(key), permits.Count(n))
	if detached {
		return misuse.Errorf("%sleasehold run -p %d takes one of them", what, n)
	}
	return misuse.Errorf("%suse -p %d to take one of them, or another key, or once all are free start over with leasehold forget %s", what, n, wording.ShellWord(key))
}
