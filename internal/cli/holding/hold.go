package holding

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/semaphore"
)

// Hold is a held lock or permit, or the held locks of several keys.
type Hold struct {
	seeker   *Seeker
	renewals *renewals

	name  string            // the key that the user named, also for a permit
	locks []*leasehold.Lock // at least one, in the order of their keys
	group *leasehold.Group  // set for several keys; nil otherwise

	running atomic.Bool // CMD runs
}

func (h *Hold) first() *leasehold.Lock { return h.locks[0] }

// Context ends when the first of the locks is lost.
func (h *Hold) Context() context.Context {
	if h.group != nil {
		return h.group.Context()
	}
	return h.first().Context()
}

// Err returns the error of the first lost lock; nil if none is lost.
func (h *Hold) Err() error {
	if h.group != nil {
		return h.group.Err()
	}
	return h.first().Err()
}

// TrustedUntil returns the first end of trust among the locks.
func (h *Hold) TrustedUntil() time.Time {
	return slices.MinFunc(h.locks, func(a, b *leasehold.Lock) int { return a.TrustedUntil().Compare(b.TrustedUntil()) }).TrustedUntil()
}

// Running reports whether CMD has begun, and has not ended.
func (h *Hold) Running() bool { return h.running.Load() }

// Record returns the stored record of the first lock.
func (h *Hold) Record() leasehold.Record { return h.first().Record() }

// String names the keys.
func (h *Hold) String() string { return wording.List(wording.EachKey(h.keys())) }

// Are names the keys with their verb: "a is", or "a and b are".
func (h *Hold) Are() string { return wording.KeysAre(h.keys()) }

func (h *Hold) keys() []leasehold.Key {
	keys := make([]leasehold.Key, len(h.locks))
	for i, l := range h.locks {
		keys[i] = l.Key()
	}
	return keys
}

// Detach turns the hold into a grant, which outlives the command.
func (h *Hold) Detach() (leasehold.Grant, error) { return h.first().Detach() }

// TakeBack releases a grant that Detach has made and that no other process has. A signal
// does not interrupt it: it takes at most ReleaseLimit.
func (h *Hold) TakeBack(ctx context.Context, g leasehold.Grant) error {
	ctx, cancel := context.WithTimeout(ctx, ReleaseLimit)
	defer cancel()
	lock, err := h.seeker.locks.Resume(ctx, g)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

// acquire acquires all of keys, one of them, or a permit.
func (h *Hold) acquire(ctx context.Context, w Wanted, keys []leasehold.Key, all *allHeld) error {
	locks := h.seeker.locks
	h.name = w.Keys[0]
	var lock *leasehold.Lock
	var err error
	switch {
	case w.Leads:
		lock, err = h.seeker.seat.Campaign(ctx, w.Value, w.options()...)
	case len(w.Keys) == 1:
		lock, err = acquireOne(ctx, locks, w)
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
	return err
}

// acquireOne acquires the lock of a key, or one of its permits.
func acquireOne(ctx context.Context, locks *leasehold.Client, w Wanted) (*leasehold.Lock, error) {
	if w.Permits == 0 {
		return locks.Acquire(ctx, w.Keys[0], w.options()...)
	}
	counted, err := semaphore.New(locks, w.Keys[0], w.Permits)
	if err != nil {
		return nil, err
	}
	return counted.Acquire(ctx, w.options()...)
}
