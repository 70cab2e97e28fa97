package acquire

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/localqueue"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Acquirer acquires keys for the calls of one client.
type Acquirer struct {
	*Keys
	Observer *liveness.Observer
	keeper   Keeper
}

// New returns a client whose grants keeper keeps.
func New(keys *Keys, observer *liveness.Observer, keeper Keeper) *Acquirer {
	return &Acquirer{Keys: keys, Observer: observer, keeper: keeper}
}

// Keeper keeps what was granted to a client.
type Keeper interface {
	// Holds reports whether the client holds that grant of the key. Through an outage it
	// may, though the record has not changed for a lease.
	Holds(key protocol.Key, grant string) bool

	// GiveBack releases holdings whose caller has left, within the release grace.
	GiveBack([]Holding)

	// Shares reports whether the client's grants are renewed together, as a session.
	Shares() bool

	// Session returns the session to be granted under, and begins one if none is trusted; nil
	// if grants are renewed one by one. The error is an *attempts.Failure.
	Session(ctx context.Context) (Session, error)

	// CheckSoon is called when attempts for key were given up. While their session is
	// renewed, no lease frees the key.
	CheckSoon(key protocol.Key)
}

// Session is a shared lease.
type Session interface {
	Names() (id, owner string)
	Lease() *lease.Lease
}

// Holding is a grant in the hands of the client, which renews it.
type Holding interface {
	localqueue.Grant
	Lease() *lease.Lease
	GiveBack() // releases it, as its caller has left
}

// Want describes one key that a call wants, and the terms of its grant.
type Want struct {
	Key        protocol.Key
	Timing     lease.Timing
	Changes    protocol.Changes
	IfExists   bool
	NoWait     bool
	EvenIfDead bool // with NoWait: a holder that appears dead is not observed either
	Manual     bool // nothing is sent in the background
	Delete     bool // what is freed is deleted
	Once       protocol.Once

	OneOfSeveral bool // wanted with others: never handed over
	InOrder      bool // one of several that are taken in the order of their keys

	// Hold begins to hold what was granted. It is called at once, also for a caller who
	// has left.
	Hold func(ctx context.Context, g Grant) Holding
}

// Grant is a granted key: the attempt that succeeded, and the record that it left.
type Grant struct {
	GrantAttempt
	Record  protocol.Record
	Resumed bool // it was detached before: until the caller of Resume has it, it is not released
}

// GrantAttempt is one grant sent once. Its version is never used again.
type GrantAttempt struct {
	lease.Attempt
	Owner   string
	Session Session          // the session of the grant; nil if it has none
	Dead    *protocol.Record // the dead holder that it replaces; nil if there is none
	Handed  bool             // another client sent it, which handed the key over
}

// Lives reports whether a grant by this attempt can be trusted at now, if the attempt
// was applied.
func (a GrantAttempt) Lives(t lease.Timing, now decide.Instant) bool {
	if a.Session != nil {
		return a.Session.Lease().Ended() == nil
	}
	return !now.Past(t.Scaled(a.Lease).TrustedFrom(a.Sent))
}

// isWorthHaving reports whether at least half of the trust in a grant by this attempt is
// left, if the attempt was applied. Under a session it reports whether the session is trusted.
func (a GrantAttempt) isWorthHaving(t lease.Timing, now decide.Instant) bool {
	if a.Session != nil {
		return a.Lives(t, now)
	}
	t = t.Scaled(a.Lease)
	return now.Remaining(t.TrustedFrom(a.Sent)) >= t.Trust()/2
}

// ObservesDead reports whether a call with NoWait waits for a holder that appears dead,
// until it is taken over or renews.
func (w *Want) ObservesDead() bool { return w.NoWait && !w.EvenIfDead }

// Within is the deadline of an attempt under a session, nil for none: a reply is of no
// use after the trust in the grant has ended, or that in the session.
func (w *Want) Within(s Session) time.Duration {
	limit := min(attempts.Limit, w.Timing.Trust())
	if s == nil {
		return limit
	}
	return max(min(limit, s.Lease().Remaining()), 1)
}
