package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// hold is what CMD runs under: a lock, a permit, or the locks of several keys.
type hold struct {
	name  string            // the key that the user has named: of a permit too
	locks []*leasehold.Lock // at least one, in the order of their keys
	group *leasehold.Group  // of several; else nil
}

func (h hold) first() *leasehold.Lock { return h.locks[0] }

// Context ends when the first of the locks is lost.
func (h hold) Context() context.Context {
	if h.group != nil {
		return h.group.Context()
	}
	return h.first().Context()
}

// Err is the error of the first that was lost; nil: none.
func (h hold) Err() error {
	if h.group != nil {
		return h.group.Err()
	}
	return h.first().Err()
}

// TrustedUntil is when trust in the first of them ends.
func (h hold) TrustedUntil() time.Time {
	return slices.MinFunc(h.locks, func(a, b *leasehold.Lock) int { return a.TrustedUntil().Compare(b.TrustedUntil()) }).TrustedUntil()
}

func (h hold) release(ctx context.Context) error {
	if h.group != nil {
		return h.group.Release(ctx)
	}
	return h.first().Release(ctx)
}

// String names the keys.
func (h hold) String() string {
	var keys []leasehold.Key
	for _, l := range h.locks {
		keys = append(keys, l.Key())
	}
	return wording.Keys(keys)
}

// lines returns something of each lock, one a line.
func (h hold) lines(of func(*leasehold.Lock) string) string {
	var all []string
	for _, l := range h.locks {
		all = append(all, of(l))
	}
	return strings.Join(all, "\n")
}
