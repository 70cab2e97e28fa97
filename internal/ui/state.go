package ui

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/liveness"
)

// under returns the observed renewals (a Beat) of a lock whose holder renews a session
// instead of the lock. b is the Beat of the lock's record, and session is the Beat of the
// session. The Beat of an ended session has no Since and no Lease, so those of the lock are
// kept.
func under(b, session liveness.Beat) liveness.Beat {
	b.Until, b.Dead = session.Until, session.Dead
	if !session.Since.IsZero() {
		b.Since, b.Lease = session.Since, session.Lease
	}
	return b
}

// warnAt returns the time from which a held lock is shown as expiring: a third of its lease
// before the end. A holder that renews four times a lease, as usual, never gets there.
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

// stateAt returns the state of a lock at the time now.
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
