package acquire

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/indoubt"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Acquirer acquires keys for all calls of one client.
type Acquirer struct {
	*Keys
	Observer *liveness.Observer
	keeper   Keeper
}

// New returns an Acquirer. The parameter "keeper" is the part of the client that renews and
// releases the granted keys.
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

	// Session returns the session for new grants. If the client has no trusted session, Session
	// begins a new session. It returns a nil Session if each lock of the client has a lease of its
	// own. The error is an *attempts.Failure.
	Session(ctx context.Context) (Session, error)

	// CheckSoon is called when the client has abandoned attempts to acquire the key. DynamoDB may
	// still apply such an attempt, which then blocks the key for as long as the client renews the
	// attempt's session. CheckSoon starts checks that detect this, and release the key.
	CheckSoon(key protocol.Key)
}

// Session is a lease that all locks of a client share.
type Session interface {
	Names() (id, owner string)
	Lease() *lease.Lease
}

// Holding is a key that the client holds.
type Holding interface {
	Age() time.Duration      // time since the key was granted
	IsOver() bool            // reports whether the grant has ended
	Record() protocol.Record // record that shows the grant, to report to waiters
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
	Manual     bool // the lock is not renewed, and the client sends nothing in the background after the call
	Delete     bool // the release deletes the record
	Once       protocol.Once

	OneOfSeveral bool // the call is to acquire one or all of several keys, so no other goroutine may hand this key to it
	InOrder      bool // the call is to acquire all of several keys, in sorted order

	// Hold is called as soon as the key is granted, even if the caller has stopped waiting. It
	// starts to renew the key, and returns the new Holding.
	Hold func(ctx context.Context, g Grant) Holding
}

// Grant is a granted key: the attempt that was applied, and the record after that write.
type Grant struct {
	GrantAttempt
	Record     protocol.Record
	AwaitsRest bool // the call is to acquire all of several keys: the lock is renewed until the call has them all, even if Want.Manual is set, as the wait may be longer than the lease
	Resumed    bool // the client has resumed the grant after a Detach; Close does not release the key until the caller has received the lock
}

// GrantAttempt is one write that can grant a key. The client sends the write once, and never
// uses the version of the write again.
type GrantAttempt struct {
	lease.Attempt
	Owner   string
	Session Session          // the session of the grant; nil if the grant has a lease of its own
	Dead    *protocol.Record // the dead holder from which the attempt takes the key over; nil if the key is free
	Handed  bool             // another client wrote the grant, when it handed the key to this client
}

// Lives reports whether the client may still trust the grant of this attempt. It assumes that
// DynamoDB has applied the attempt. The parameter "now" is the current time.
func (a GrantAttempt) Lives(t lease.Timing, now decide.Instant) bool {
	if a.Session != nil {
		return a.Session.Lease().Ended() == nil
	}
	return !now.Past(t.Scaled(a.Lease).TrustedFrom(a.Sent))
}

// isWorthHaving reports whether at least half of the grant's trusted time is left. It assumes that
// DynamoDB has applied the attempt. For a grant under a session, it reports whether the session is
// trusted.
func (a GrantAttempt) isWorthHaving(t lease.Timing, now decide.Instant) bool {
	if a.Session != nil {
		return a.Lives(t, now)
	}
	t = t.Scaled(a.Lease)
	return now.Remaining(t.TrustedFrom(a.Sent)) >= t.Trust()/2
}

// Within returns how long to wait for the reply to an attempt: at most attempts.Limit, and no
// longer than the client would trust the grant. If s is not nil, the trust in the session s limits
// the time, too.
func (w *Want) Within(s Session) time.Duration {
	limit := min(attempts.Limit, w.Timing.Trust())
	if s == nil {
		return limit
	}
	return max(min(limit, s.Lease().Remaining()), 1)
}

// Keys is the state of one client that this package shares with package hold.
type Keys struct {
	*core.Env
	Local   *LocalQueues
	InDoubt indoubt.Attempts[protocol.Key] // grant attempts whose outcome is unknown
	Left    Left

	roundTrip atomic.Int64 // estimate of the round trip of a request, in nanoseconds; see decide.RoundTrip
}

// NewKeys returns the Keys of a client that has not acquired any key yet.
func NewKeys(env *core.Env) *Keys {
	k := &Keys{Env: env, Local: newLocalQueues(handOvers, env.PollMin, env.PollMax)}
	k.roundTrip.Store(int64(decide.FirstRoundTrip))
	return k
}

// Attempt returns a new attempt to acquire a key with a lease of the given term. If s is
// not nil, the grant is under session s, and s.Names gives the owner of the grant.
func (k *Keys) Attempt(term time.Duration, s Session) GrantAttempt {
	a := GrantAttempt{Attempt: lease.Attempt{Version: protocol.NewVersion(), Sent: k.Now(), Lease: term}, Owner: k.Owner, Session: s}
	if s != nil {
		_, a.Owner = s.Names()
	}
	return a
}

// Grant returns the values for the write of attempt a, which acquires the key that w describes.
func (k *Keys) Grant(w *Want, a GrantAttempt) protocol.Grant {
	var session string
	if a.Session != nil {
		session, _ = a.Session.Names()
	}
	return protocol.Grant{
		Key: w.Key, Owner: a.Owner, Session: session, Version: a.Version, Lease: a.Lease, Now: k.Wall(),
		IfExists: w.IfExists, Changes: w.Changes, Once: w.Once,
	}
}

// HasQueue reports whether a release may hand the key of record r to a waiter in the
// record's queue. It returns true if the layout has queues and the queue of r is not suspended.
func (k *Keys) HasQueue(r protocol.Record) bool {
	return k.Native != nil && !decide.IsSuspended(r.NoQueueUntil, k.Wall(), k.Lease)
}

// Pauses returns the pauses between a failed request of a waiter and its repetition. The
// pauses grow from PollMin to two seconds.
func (k *Keys) Pauses() attempts.Pauses {
	return attempts.Pauses{Least: k.PollMin, Most: 2 * time.Second}
}

// RoundTrip returns an estimate of the round trip of a request.
func (k *Keys) RoundTrip() time.Duration { return time.Duration(k.roundTrip.Load()) }

// noteRoundTrip adds a request to the estimate of the round trip. The request was sent at
// the given time, and its reply has just arrived. If two goroutines call noteRoundTrip at
// the same time, the estimate may miss one of the requests.
func (k *Keys) noteRoundTrip(sent decide.Instant) {
	k.roundTrip.Store(int64(decide.RoundTrip(k.RoundTrip(), k.Now().Mono-sent.Mono)))
}

// since returns the time since began, rounded for error messages.
func (k *Keys) since(began decide.Instant) time.Duration {
	return (k.Now().Mono - began.Mono).Round(100 * time.Millisecond)
}

// detached runs fn on a goroutine that Close waits for. It returns a channel that is closed
// once fn has returned.
func (k *Keys) detached(fn func()) <-chan struct{} {
	done := make(chan struct{})
	k.Detach(func() {
		defer close(done)
		fn()
	})
	return done
}

// IsInDoubt reports whether the record r shows a grant that this client has abandoned before its
// outcome was known: an attempt of its own, or a hand-over to its queue entry. Then no caller holds
// the key, and this client takes the key over at once.
func (k *Keys) IsInDoubt(key protocol.Key, r protocol.Record) bool {
	now := k.Now().Mono
	return k.InDoubt.Has(key, r.Version, now) || r.Grant != "" && k.InDoubt.Has(key, r.Grant, now)
}

// Freeing returns a write that releases a key. DynamoDB applies the write only if the key's record
// shows the abandoned attempt that the parameter "hold" describes. If deletes is true, the write
// deletes the record. The client need not have read the record first.
func (k *Keys) Freeing(hold protocol.Hold, deletes bool) *protocol.Write {
	if deletes {
		return k.Proto.Delete(hold)
	}
	return k.Proto.Release(hold, protocol.Release{Version: protocol.NewVersion(), Expires: k.Expires(true, k.Native != nil)})
}

// Left stores the records of keys that this client has just handed to other clients. A later call
// for such a key joins the record's queue without a read or a useless grant. Left is safe for
// concurrent use. The zero Left is empty.
type Left struct {
	mu      sync.Mutex
	records map[protocol.Key]left
}

type left struct {
	item protocol.Item
	sent decide.Instant // time when this client sent the write that handed the key over
}

const (
	mostLeft    = 1000            // largest number of records in a Left; if a Left is full, Note erases all its records before it adds another
	leftIsFresh = 2 * time.Second // how long a record is kept after the write that handed the key over: during this time, DynamoDB would almost certainly reject a grant
)

// Note keeps the record "item" of a key that was handed over. The parameter "sent" is the time when
// the client sent the write that handed the key over, and item is the record after that write.
func (l *Left) Note(key protocol.Key, item protocol.Item, sent decide.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.records == nil || len(l.records) >= mostLeft {
		l.records = map[protocol.Key]left{}
	}
	for old, r := range l.records {
		if durations.Less(sent.Mono, r.sent.Mono) >= leftIsFresh {
			delete(l.records, old)
		}
	}
	l.records[key] = left{item, sent}
}

// Take removes the record of key from Left, and returns it with the time when the hand-over was
// sent. It returns false if Left has no record of the key, or if the hand-over is older than
// leftIsFresh.
func (l *Left) Take(key protocol.Key, now decide.Instant) (protocol.Item, decide.Instant, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.records[key]
	delete(l.records, key)
	return r.item, r.sent, ok && durations.Less(now.Mono, r.sent.Mono) < leftIsFresh
}
