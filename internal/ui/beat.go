package ui

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Look is when a record was read: when the request was sent, and when its answer
// was there.
type Look struct{ Asked, Answered time.Time }

// rules say when a holder is dead.
type rules struct {
	clocked bool          // records say when they expire
	late    time.Duration // clocked: how long after that a holder is dead by every clock
}

// missingRowLease is for how long a session's row must be missing until a client
// with the default lease takes over its locks.
const missingRowLease = 20 * time.Second

// Beat is how a holder lives, as observed: it renews, and each renewal is a new
// version.
type Beat struct {
	Version  string
	Since    time.Time     // the first sight of the version
	Until    time.Time     // the holder is dead if the version still stands by then
	Lease    time.Duration // from full to empty
	Renewals int           // seen since the first sight of the grant
	Dead     bool
}

// next is what a look at r shows of a holder that was seen as b before. The zero
// Beat: never.
//
// A version that stands counts from when it was first seen, as a waiter counts: the
// holder may have written it long before, never later. It is dead if a look that was
// asked for after the end of its lease still shows it.
func (b Beat) next(r protocol.Record, by rules, look Look) Beat {
	changed := b.Version != "" && b.Version != r.Version
	if b.Version == "" || changed {
		b.Version, b.Since = r.Version, look.Answered
	}
	if changed {
		b.Renewals++
	}
	b.Lease, b.Until = r.Lease, b.Since.Add(r.Lease)
	if by.clocked {
		b.Until = r.ExpiresAt.Add(by.late)
		from := r.GrantedAt
		if from.IsZero() || b.Renewals > 0 {
			from = b.Since
		}
		b.Lease = max(b.Until.Sub(from), 0)
	}
	b.Dead = !look.Asked.Before(b.Until)
	return b
}

// under is the beat of a lock whose holder renews a session in its place. row is nil
// if the session has no row, and missing is since when.
func (b Beat) under(row *Lock, missing time.Time, look Look) Beat {
	switch {
	case row == nil:
		b.Since, b.Lease, b.Until = missing, missingRowLease, missing.Add(missingRowLease)
		b.Dead = !look.Asked.Before(b.Until)
	case len(row.Holders) == 0: // it has ended, for good
		b.Until, b.Dead = row.Look.Answered, true
	default:
		s := row.Holders[0].Beat
		b.Since, b.Until, b.Lease, b.Dead = s.Since, s.Until, s.Lease, s.Dead
	}
	return b
}

// warnAt is when a holder is expiring: less than a third of its lease is left, so
// that one which renews as it should, four times a lease, is not.
func (b Beat) warnAt() time.Time { return b.Until.Add(-b.Lease / 3) }

// State is how a key stands.
type State string

// Values of State.
const (
	Held     State = "held"
	Expiring State = "expiring" // held, and not renewed for two thirds of its lease
	Dead     State = "dead"     // held by nobody who lives: it can be taken over
	Released State = "released"
	Damaged  State = "damaged"
)

// stateAt is how a lock stands. A read/write lock stands as its best holder does.
func stateAt(l Lock, now time.Time) State {
	switch {
	case l.Kind == KindDamaged:
		return Damaged
	case l.Kind == KindSemaphore:
		return Held
	case len(l.Holders) == 0:
		return Released
	}
	state := Dead
	for _, h := range l.Holders {
		switch {
		case h.Beat.Dead:
		case now.Before(h.Beat.warnAt()):
			return Held
		default:
			state = Expiring
		}
	}
	return state
}
