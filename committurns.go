package leasehold

import (
	"context"
	"time"
)

// Commits of one lock take turns with each other and with its release, so that
// none conflicts with another or finds the record changed by it. Renewals keep
// out of their way, but do not depend on them. The turn is h.committing.

// afterCommits waits for the commits of this lock and keeps others out until
// leave is called; false: limit came first.
func (h *holding) afterCommits(limit context.Context) (leave func(), ok bool) {
	select {
	case h.committing <- struct{}{}:
		return h.endTurn, true
	case <-limit.Done():
		return func() {}, false
	}
}

// betweenCommits keeps commits out until leave is called, so that a renewal
// does not conflict with them; false: one is under way.
func (h *holding) betweenCommits() (leave func(), ok bool) {
	select {
	case h.committing <- struct{}{}:
		return h.endTurn, true
	default:
		return func() {}, false
	}
}

// besideCommits is betweenCommits that waits for a commit under way, but for no
// more than a quarter of the trust that is left.
func (h *holding) besideCommits() (leave func()) {
	patience := time.NewTimer(h.c.now().Remaining(h.trustedUntil()) / 4)
	defer patience.Stop()
	select {
	case h.committing <- struct{}{}:
		return h.endTurn
	case <-patience.C:
	case <-h.over:
	}
	return func() {}
}

func (h *holding) endTurn() { <-h.committing }
