package ui

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/liveness"
)

// under returns the Beat (the observed renewals) of a lock with a session. The parameter b is the
// Beat of the lock's own record, which is not renewed. If the session has ended, its Beat has no
// Since and no Lease, so the result has those of b.
func under(b, session liveness.Beat) liveness.Beat {
	b.Until, b.Dead = session.Until, session.Dead
	if !session.Since.IsZero() {
		b.Since, b.Lease = session.Since, session.Lease
	}
	return b
}

// warnAt returns the time when a held lock is first shown as expiring: when a third of its lease is
// left. A holder that renews on time renews four times per lease, so its lock is never shown as
// expiring.
func warnAt(b liveness.Beat) time.Time { return b.Until.Add(-b.Lease / 3) }

// State is the state of a key, as web pages show it.
type State string

// States of a key.
const (
	Held State = "held"
	// Held, but the holder has not renewed for two thirds of the lease.
	Expiring State = "expiring"
	// The holder is dead, so another client can take over the key.
	Dead     State = "dead"
	Released State = "released"
	Damaged  State = "damaged"
)

// stateAt returns the state of a lock at the given time.
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
