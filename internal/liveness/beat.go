package liveness

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Reading is one reading of a record, or of a session's row: when the request was sent, and
// when its answer was there.
type Reading struct{ Asked, Answered time.Time }

// Beat is the renewal of a holder as an observer sees it: each renewal is a new version.
type Beat struct {
	Version  string
	Since    time.Time     // when the version was first read; zero if never
	Until    time.Time     // the holder is dead if the version is unchanged by then
	Lease    time.Duration // from full to empty
	Renewals int           // seen since the first sight of the grant
	Dead     bool
}

// Next returns the beat after a reading of r, of a holder that was seen as b before. r is
// its record or, if it renews a session instead, the row of the session.
//
// A version counts from the answer that showed it first: the holder may have written it
// long before, never later. It is dead if a reading that was asked for after the end of its
// lease still shows it: it may have renewed while the answer was under way. A missing row
// is not a renewal, but it is unknown since when it is missing, so that counts anew.
func (by Rule) Next(b Beat, r protocol.Record, at Reading) Beat {
	first := b.Since.IsZero()
	if first || b.Version != r.Version {
		b.Version, b.Since = r.Version, at.Answered
		if !first && !protocol.IsNoRow(r.Version) {
			b.Renewals++
		}
	}
	left := by.deadAt(r, b.Since.Sub(at.Asked), 0, at.Asked)
	b.Until, b.Lease, b.Dead = at.Asked.Add(left), r.Lease, r.Released || left <= 0
	if by.Clocked {
		b.Until = at.Asked.Round(0).Add(left) // the time in the record, however the wall clock runs
		from := r.GrantedAt
		if from.IsZero() || b.Renewals > 0 {
			from = b.Since
		}
		b.Lease = max(b.Until.Sub(from), 0)
	}
	return b
}
