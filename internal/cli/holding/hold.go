package holding

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// Hold is what is held: a lock, a permit, or the locks of several keys.
type Hold struct {
	seeker   *Seeker
	renewals *renewals

	name  string            // the key that the user has named: of a permit too
	locks []*leasehold.Lock // at least one, in the order of their keys
	group *leasehold.Group  // of several; else nil

	running atomic.Bool // CMD
}

func (h *Hold) first() *leasehold.Lock { return h.locks[0] }

// Context ends when the first of the locks is lost.
func (h *Hold) Context() context.Context {
	if h.group != nil {
		return h.group.Context()
	}
	return h.first().Context()
}

// Err is the error of the first that was lost; nil: none.
func (h *Hold) Err() error {
	if h.group != nil {
		return h.group.Err()
	}
	return h.first().Err()
}

// TrustedUntil is when trust in the first of them ends.
func (h *Hold) TrustedUntil() time.Time {
	return slices.MinFunc(h.locks, func(a, b *leasehold.Lock) int { return a.TrustedUntil().Compare(b.TrustedUntil()) }).TrustedUntil()
}

// Running reports whether CMD has begun, and has not ended.
func (h *Hold) Running() bool { return h.running.Load() }

// Record is that of the first of them, as stored.
func (h *Hold) Record() leasehold.Record { return h.first().Record() }

// String names the keys.
func (h *Hold) String() string {
	var keys []leasehold.Key
	for _, l := range h.locks {
		keys = append(keys, l.Key())
	}
	return wording.Keys(keys)
}

// Detach makes it a grant, which outlives the command.
func (h *Hold) Detach() (leasehold.Grant, error) { return h.first().Detach() }

// TakeBack releases a grant that Detach has made: nobody has it, so nobody else could. A
// signal does not interrupt it: it takes at most ReleaseLimit.
func (h *Hold) TakeBack(ctx context.Context, g leasehold.Grant) error {
	ctx, cancel := context.WithTimeout(ctx, ReleaseLimit)
	defer cancel()
	lock, err := h.seeker.locks.Resume(ctx, g)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}
