package ui

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/liveness"
)

// under returns the beat of a lock whose holder renews a session instead of the lock. b is
// the beat of the lock, and session is the beat of the session as observed. The beat of an
// ended session has no Since and no Lease, so the lock's own values stay.
func under(b, session liveness.Beat) liveness.Beat {
	b.Until, b.Dead = session.Until, session.Dead
	if !session.Since.IsZero() {
		b.Since, b.Lease = session.Since, session.Lease
	}
	return b
}

// warnAt returns the time from which a holder counts as expiring, because less than a third
// of its lease is left. A holder that renews normally, four times a lease, never reaches
// that time.
func warnAt(b liveness.Beat) time.Time { return b.Until.Add(-b.Lease / 3) }

// State is the state of a key.
type State string

// Values of State.
const (
	Held     State = "held"
	Expiring State = "expiring" // held, but not renewed for two thirds of the lease
	Dead     State = "dead"     // the holder is dead, so the lock can be taken over
	Released State = "released"
	Damaged  State = "damaged"
)

// stateAt returns the state of a lock.
func stateAt(l Lock, now time.Time) State {
	switch {
	case l.Kind == holders.KindDamaged:
		return Damaged
	case l.Holder == nil:
		return Released
	case l.Holder.Beat.Dead:
		return Dead
	case now.Before(warnAt(l.Holder.Beat)):
		return Held
	}
	return Expiring
}
