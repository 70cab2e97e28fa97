package leasehold

import (
	"context"
	"slices"
)

// Commits of one lock take turns with each other and with its release, by
// h.committing. None conflicts with another then, or finds the record changed by
// it. Renewals keep out of their way if they can.

// takeTurns waits for the turn of each lock's commits, in one order for all who
// wait, and keeps others out until leave is called. late is a lock whose turn had
// not come when limit did; nil: all turns were taken.
func takeTurns(limit context.Context, holds []*holding) (late *holding, leave func()) {
	var taken []*holding
	leave = func() {
		for _, h := range taken {
			h.endTurn()
		}
	}
	for _, h := range slices.SortedFunc(slices.Values(holds), compareHoldings) {
		select {
		case h.committing <- struct{}{}:
			taken = append(taken, h)
		case <-limit.Done():
			return h, leave
		}
	}
	return nil, leave
}

func (h *holding) endTurn() { <-h.committing }
