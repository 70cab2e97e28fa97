package liveness

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Reading is one reading of a record, or of a session's row: the times when it was
// requested and answered.
type Reading struct{ Asked, Answered time.Time }

// Beat is an observer's knowledge of a holder's renewals. Each renewal writes a new version.
type Beat struct {
	Version  string
	Since    time.Time     // when the version was first read; zero if never
	Until    time.Time     // the holder is dead if the version is unchanged by then
	Lease    time.Duration // how long the version lasts without a renewal
	Renewals int           // number of renewals since the grant was first seen
	Dead     bool
}

// Next returns the beat after a reading that showed r. b is the previous beat of the same
// holder. r is the holder's record or, if a session is renewed instead, the session's row.
//
// The lease of a version counts from the answer that showed the version first: the holder
// may have written it long before, but never later. The holder is dead if a reading that
// was requested after the end of the lease still shows the version. A reply to an earlier
// request may be out of date. A missing row is not a renewal. Nobody knows how long the row
// has been missing, so its time starts with the first reading that does not find it.
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
		b.Until = at.Asked.Round(0).Add(left) // the time in the record, without a monotonic reading
		from := r.GrantedAt
		if from.IsZero() || b.Renewals > 0 {
			from = b.Since
		}
		b.Lease = max(b.Until.Sub(from), 0)
	}
	return b
}
