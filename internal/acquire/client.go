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

// Acquirer acquires keys for all calls of one client.
type Acquirer struct {
	*Keys
	Observer *liveness.Observer
	keeper   Keeper
}

// New returns an Acquirer. keeper is the part of the client that renews and releases the
// granted keys.
func New(keys *Keys, observer *liveness.Observer, keeper Keeper) *Acquirer {
	return &Acquirer{Keys: keys, Observer: observer, keeper: keeper}
}

// Keeper is the part of a client that renews and releases the granted keys.
type Keeper interface {
	// Holds reports whether the client holds the key by the grant with the given id. With
	// HoldThroughOutage of layout.AWSLabs, the client may hold the key through an outage, even
	// if the record has not changed for a whole lease.
	Holds(key protocol.Key, grant string) bool

	// GiveBack releases the keys that were acquired for a caller that has stopped waiting. It
	// waits no longer than the client's ReleaseGrace.
	GiveBack([]Holding)

	// Shares reports whether the client's locks share the lease of a session.
	Shares() bool

	// Session returns the session for new grants. If the client has no trusted session,
	// Session begins one. It returns a nil Session if each lock of the client has a lease of
	// its own. The error is an *attempts.Failure.
	Session(ctx context.Context) (Session, error)

	// CheckSoon is called when the client has given up attempts to acquire key. If DynamoDB
	// applies such an attempt later, it blocks the key for as long as the client renews its
	// session. CheckSoon starts the check that frees the key in that case.
	CheckSoon(key protocol.Key)
}

// Session is a lease that all locks of a client share.
type Session interface {
	Names() (id, owner string)
	Lease() *lease.Lease
}

// Holding is a key that the client holds.
type Holding interface {
	localqueue.Grant
	Lease() *lease.Lease
}

// Want describes one key that a call is to acquire, and the terms of its grant.
type Want struct {
	Key        protocol.Key
	Timing     lease.Timing
	Changes    protocol.Changes
	IfExists   bool
	NoWait     bool
	EvenIfDead bool // if NoWait is set too, the call returns at once even if the holder appears dead
	Manual     bool // the lock is not renewed, and the client sends nothing in the background
	Delete     bool // the release deletes the record
	Once       protocol.Once

	OneOfSeveral bool // the call is to acquire one of several keys, so no other goroutine may hand this key to it
	InOrder      bool // the call is to acquire all of several keys, in sorted order

	// Hold is called as soon as the key is granted, even if the caller has stopped waiting. It
	// returns the Holding, which renews the key.
	Hold func(ctx context.Context, g Grant) Holding
}

// Grant is a granted key: the attempt that was applied, and the record after that write.
type Grant struct {
	GrantAttempt
	Record  protocol.Record
	Resumed bool // the client has resumed the grant after a Detach; Close does not release the key until the caller has received the lock
}

// GrantAttempt is one write of a grant. The client sends it once and never uses its version
// again.
type GrantAttempt struct {
	lease.Attempt
	Owner   string
	Session Session          // the session of the grant; nil if the grant has a lease of its own
	Dead    *protocol.Record // the dead holder from which the attempt takes the key over; nil if the key is free
	Handed  bool             // another client wrote the grant, when it handed the key to this client
}

// Lives reports whether the grant of this attempt would still be trusted at the time now,
// if DynamoDB has applied the attempt.
func (a GrantAttempt) Lives(t lease.Timing, now decide.Instant) bool {
	if a.Session != nil {
		return a.Session.Lease().Ended() == nil
	}
	return !now.Past(t.Scaled(a.Lease).TrustedFrom(a.Sent))
}

// isWorthHaving reports whether at least half of the trusted time of a grant by this
// attempt is left, if DynamoDB has applied the attempt. For an attempt under a session, it
// reports whether the session is trusted.
func (a GrantAttempt) isWorthHaving(t lease.Timing, now decide.Instant) bool {
	if a.Session != nil {
		return a.Lives(t, now)
	}
	t = t.Scaled(a.Lease)
	return now.Remaining(t.TrustedFrom(a.Sent)) >= t.Trust()/2
}

// Within returns how long to wait for the reply to an attempt under session s. s is nil if
// the grant has a lease of its own. A later reply is useless, as the grant or the session
// is no longer trusted by then.
func (w *Want) Within(s Session) time.Duration {
	limit := min(attempts.Limit, w.Timing.Trust())
	if s == nil {
		return limit
	}
	return max(min(limit, s.Lease().Remaining()), 1)
}
