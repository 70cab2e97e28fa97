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

// New returns an Acquirer whose grants are held by keeper.
func New(keys *Keys, observer *liveness.Observer, keeper Keeper) *Acquirer {
	return &Acquirer{Keys: keys, Observer: observer, keeper: keeper}
}

// Keeper is the part of a client that holds the granted keys.
type Keeper interface {
	// Holds reports whether the client holds the key by the given grant. With
	// layout.AWSLabs the client may hold the key through an outage, although the record has
	// not changed for a lease.
	Holds(key protocol.Key, grant string) bool

	// GiveBack releases the holdings of a caller that has left, within the release grace.
	GiveBack([]Holding)

	// Shares reports whether the client's locks share the lease of a session.
	Shares() bool

	// Session returns the session for new grants. If there is no trusted session, it begins
	// one. It returns nil if each lock has a lease of its own. The error is an
	// *attempts.Failure.
	Session(ctx context.Context) (Session, error)

	// CheckSoon is called when the client has given up attempts to acquire key. It makes
	// sure that no such attempt, applied late, blocks the key under the client's session.
	// The lease of such a grant would not expire as long as the session is renewed.
	CheckSoon(key protocol.Key)
}

// Session is a shared lease.
type Session interface {
	Names() (id, owner string)
	Lease() *lease.Lease
}

// Holding is a key that the client holds, and renews.
type Holding interface {
	localqueue.Grant
	Lease() *lease.Lease
	GiveBack() // releases the key because the caller has left
}

// Want describes one key that a call wants, and the terms of its grant.
type Want struct {
	Key        protocol.Key
	Timing     lease.Timing
	Changes    protocol.Changes
	IfExists   bool
	NoWait     bool
	EvenIfDead bool // with NoWait, the call returns at once even if the holder appears dead
	Manual     bool // the lock is not renewed, and the client sends nothing in the background
	Delete     bool // a release deletes the record
	Once       protocol.Once

	OneOfSeveral bool // the key is one of several that the call wants, so no other goroutine hands it over
	InOrder      bool // one of several keys that are acquired in sorted order

	// Hold begins to hold a granted key. It is called at once, even if the caller has left.
	Hold func(ctx context.Context, g Grant) Holding
}

// Grant is a granted key: the attempt that succeeded, and the record that it left.
type Grant struct {
	GrantAttempt
	Record  protocol.Record
	Resumed bool // the grant was resumed after a Detach, so it is not released until the caller has received it
}

// GrantAttempt is one attempt to write a grant, which is sent once. Its version is never
// used again.
type GrantAttempt struct {
	lease.Attempt
	Owner   string
	Session Session          // the session of the grant; nil if it has none
	Dead    *protocol.Record // the dead holder that the attempt replaces; nil if there is none
	Handed  bool             // another client wrote the grant when it handed the key over
}

// Lives reports whether a grant by this attempt could still be trusted at the time now, if
// the attempt was applied.
func (a GrantAttempt) Lives(t lease.Timing, now decide.Instant) bool {
	if a.Session != nil {
		return a.Session.Lease().Ended() == nil
	}
	return !now.Past(t.Scaled(a.Lease).TrustedFrom(a.Sent))
}

// isWorthHaving reports whether a grant by this attempt would have at least half of its
// trust left, if the attempt was applied. Under a session it reports whether the session is
// trusted.
func (a GrantAttempt) isWorthHaving(t lease.Timing, now decide.Instant) bool {
	if a.Session != nil {
		return a.Lives(t, now)
	}
	t = t.Scaled(a.Lease)
	return now.Remaining(t.TrustedFrom(a.Sent)) >= t.Trust()/2
}

// Within returns the deadline of an attempt under session s, or without a session if s is
// nil. A reply after the deadline is useless, as the grant or the session is no longer
// trusted by then.
func (w *Want) Within(s Session) time.Duration {
	limit := min(attempts.Limit, w.Timing.Trust())
	if s == nil {
		return limit
	}
	return max(min(limit, s.Lease().Remaining()), 1)
}
