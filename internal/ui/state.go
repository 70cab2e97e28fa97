package ui

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/liveness"
)

// under is the beat of a lock whose holder renews a session in its place, as that was
// seen; one that has ended is not seen to renew.
func under(b, session liveness.Beat) liveness.Beat {
	b.Until, b.Dead = session.Until, session.Dead
	if !session.Since.IsZero() {
		b.Since, b.Lease = session.Since, session.Lease
	}
	return b
}

// warnAt is when a holder is expiring: less than a third of its lease is left, so
// that one which renews as it should, four times a lease, is not.
func warnAt(b liveness.Beat) time.Time { return b.Until.Add(-b.Lease / 3) }

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

// stateAt is how a lock stands.
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
