package liveness

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Reading is one read of a record or of a session's row: when the request was sent, and when
// its answer came.
type Reading struct{ Asked, Answered time.Time }

// Beat is an observer's knowledge of one holder's renewals. Each renewal writes a new
// version of the record.
type Beat struct {
	Version  string
	Since    time.Time     // when this version was first read; zero if no version was read yet
	Until    time.Time     // the holder is dead if the record still has this version at that time
	Lease    time.Duration // how long the holder may take from this version to the next renewal
	Renewals int           // number of renewals since the observer first read the grant
	Dead     bool
}

// Next returns the beat after a reading that showed r. b is the previous beat of the same
// holder. r is the holder's record or, if a session is renewed instead, the session's row.
//
// The lease of a version counts from the first answer that showed the version: the holder
// wrote it before that answer, perhaps long before. The holder is dead if a reading that was
// requested after the end of that lease still shows the version. A reply to an earlier
// request may be out of date. A missing session row does not count as a renewal. The
// observer cannot know how long the row has been missing, so the lease counts from the first
// reading that does not find the row.
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
		b.Until = at.Asked.Round(0).Add(left) // the expiry time in the record is a wall-clock time: Round removes the monotonic reading
		from := r.GrantedAt
		if from.IsZero() || b.Renewals > 0 {
			from = b.Since
		}
		b.Lease = max(b.Until.Sub(from), 0)
	}
	return b
}
