package hold

import (
	"context"
	"slices"
)

// Commits of one lock take turns with each other and with its release, by h.committing.
// So they do not conflict, and none finds the record changed by another. Renewals wait
// for them if they can.

// takeTurns sorts holds, waits for the turn of each in that order, as all callers do, and
// keeps others out until leave is called. late is the lock whose turn had not come when
// limit ended; nil: all turns were taken.
func takeTurns(limit context.Context, holds []*Lock) (late *Lock, leave func()) {
	slices.SortFunc(holds, compareLocks)
	for i, h := range holds {
		if !h.committing.Lock(limit) {
			return h, leaving(holds[:i])
		}
	}
	return nil, leaving(holds)
}

// leaving returns the function that gives up the turns of taken.
func leaving(taken []*Lock) (leave func()) {
	return func() {
		for _, h := range taken {
			h.committing.Unlock()
		}
	}
}

func compareLocks(a, b *Lock) int { return a.key.Compare(b.key) }
