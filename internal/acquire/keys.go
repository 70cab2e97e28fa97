package acquire

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/indoubt"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/localqueue"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Keys is one client's knowledge of keys that it does not hold: which goroutines of this
// process wait for them, and which attempts of the client may still be applied. The
// Acquirer and the Holds of a client share it.
type Keys struct {
	*core.Env
	Local   *LocalQueues
	InDoubt indoubt.Attempts[protocol.Key] // grant attempts whose outcome is unknown
	Left    Left

	roundTrip atomic.Int64 // estimate of a round trip, in nanoseconds; see decide.RoundTrip
}

// NewKeys returns an empty Keys.
func NewKeys(env *core.Env) *Keys {
	k := &Keys{Env: env, Local: localqueue.New[Caller, Holding](handOvers, env.PollMin, env.PollMax)}
	k.roundTrip.Store(int64(decide.FirstRoundTrip))
	return k
}

// Attempt returns a new attempt to acquire a key under s, or without a session if s is nil.
func (k *Keys) Attempt(term time.Duration, s Session) GrantAttempt {
	a := GrantAttempt{Attempt: lease.Attempt{Version: protocol.NewVersion(), Sent: k.Now(), Lease: term}, Owner: k.Owner, Session: s}
	if s != nil {
		_, a.Owner = s.Names()
	}
	return a
}

// Grant returns the grant that attempt a writes.
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

// HasQueue reports whether a release of the record may hand the key to a waiter in the
// record's queue. It returns true if the layout has queues and this queue is not suspended.
func (k *Keys) HasQueue(r protocol.Record) bool {
	return k.Native != nil && !decide.IsSuspended(r.NoQueueUntil, k.Wall(), k.Lease)
}

// Pauses returns the pauses that a wait makes after failed requests.
func (k *Keys) Pauses() attempts.Pauses {
	return attempts.Pauses{Least: k.PollMin, Most: 2 * time.Second}
}

// RoundTrip returns an estimate of the round trip of a request.
func (k *Keys) RoundTrip() time.Duration { return time.Duration(k.roundTrip.Load()) }

// noteRoundTrip records a reply that has just arrived, to a request that was sent at the
// given time. If two replies arrive at once, the estimate may miss one of them.
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

// IsInDoubt reports whether version is an attempt of this client for key that was given up
// before its outcome was known. Nobody holds the key by such an attempt: if the record
// shows it, this client takes the key over at once.
func (k *Keys) IsInDoubt(key protocol.Key, version string) bool {
	return k.InDoubt.Has(key, version, k.Now().Mono)
}

// Freeing returns the write that frees a key if it was granted to an attempt that was given
// up. The content of the record is not known.
func (k *Keys) Freeing(proto protocol.Protocol, hold protocol.Hold, deletes bool) *protocol.Write {
	if deletes {
		return proto.Delete(hold)
	}
	return proto.Release(hold, protocol.Release{Version: protocol.NewVersion(), Now: k.Wall(), Expires: k.Expires(true, k.Native != nil)})
}

// Left holds records of keys that this client has handed to other clients, in the state in
// which this client's writes left the records. If a call wants such a key again, it starts
// from that record, as a grant would only be rejected. Left is safe for concurrent use. The
// zero Left is empty.
type Left struct {
	mu      sync.Mutex
	records map[protocol.Key]left
}

type left struct {
	item protocol.Item
	sent decide.Instant // time when the write was sent
}

const (
	mostLeft    = 1000            // number of records that are kept
	leftIsFresh = 2 * time.Second // time after the write during which a grant would almost certainly be rejected
)

// Note keeps a record in the state in which a write left it. sent is when the write was
// sent.
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

// Take returns the record of key in the state in which this client's last write left it,
// and removes the record from Left. It returns false if there is no such record, or if the
// write is no longer recent.
func (l *Left) Take(key protocol.Key, now decide.Instant) (protocol.Item, decide.Instant, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.records[key]
	delete(l.records, key)
	return r.item, r.sent, ok && durations.Less(now.Mono, r.sent.Mono) < leftIsFresh
}
