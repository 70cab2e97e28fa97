package liveness

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Observer contains what one client has observed of holders. It is safe for concurrent use.
type Observer struct {
	Requests *attempts.Sender
	Proto    protocol.Protocol
	Caps     layout.Capabilities // capabilities of the layout
	Now      func() decide.Instant
	Wall     func() time.Time
	Lease    time.Duration    // lease of this client, used for a session whose row is gone
	PollMax  time.Duration    // the mean pause between two looks of a waiter, at most
	Expires  func() time.Time // when TTL may delete a row that is marked dead now

	// Damaged is the error for an item that cannot be read.
	Damaged func(key protocol.Key, item protocol.Item, err error) error

	Records *observed.Versions

	sessions sessions
}

// Decode reads an item as the record of key.
func (o *Observer) Decode(key protocol.Key, item protocol.Item) (protocol.Record, error) {
	r, err := o.Proto.Decode(item)
	if err != nil {
		return protocol.Record{}, o.Damaged(key, item, err)
	}
	return r, nil
}

// Observe records that a reply has shown item, nil for none, as the record of key at now.
// A nil record: the key is free.
func (o *Observer) Observe(key protocol.Key, item protocol.Item, now decide.Instant) (*protocol.Record, observed.Version, error) {
	if item == nil {
		o.Records.Forget(key)
		return nil, observed.Version{}, nil
	}
	r, err := o.Decode(key, item)
	if err != nil {
		return nil, observed.Version{}, err
	}
	if r.Released {
		o.Records.Forget(key)
		return nil, observed.Version{}, nil
	}
	return &r, o.Records.Note(key, versionOf(r, now)), nil
}

// DeadAt returns when the holder of r is dead, if it does not renew. A reply has shown r at
// now, when the wall clock showed wall; its version v was first observed at v.Since. Read
// wall first: the time between the two readings then delays a takeover. Otherwise it would
// send one too early, which would be rejected.
func (o *Observer) DeadAt(r protocol.Record, v observed.Version, now decide.Instant, wall time.Time) time.Duration {
	return RuleOf(o.Proto, o.Caps).deadAt(r, v.Since.Mono, now.Mono, wall)
}

// LooksDead reports whether the holder of r, or the session that r is the row of, looks
// dead when the wall clock shows wall: see decide.LooksDead. A version of leasehold's
// says when it was made. Where records say when they expire, a dead holder need not be
// watched. The row that is not there any more renews nothing.
func (o *Observer) LooksDead(r protocol.Record, wall time.Time) bool {
	return protocol.IsNoRow(r.Version) || o.Caps.Expiry != layout.WallClock && decide.LooksDead(protocol.VersionTime(r.Version), r.Lease, wall)
}

// versionOf is the version of a record that a reply has shown at now.
func versionOf(r protocol.Record, now decide.Instant) observed.Version {
	return observed.Version{ID: r.Version, Grant: GrantOf(r), Since: now}
}

// IsNewGrant reports whether r shows another grant than before, which is nil if there was
// none.
func IsNewGrant(before *protocol.Record, r protocol.Record) bool {
	return before == nil || GrantOf(*before) != GrantOf(r)
}
