package liveness

import (
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Observer stores what one client has observed of holders. It is safe for concurrent use.
type Observer struct {
	*core.Env
	Records *observed.Versions

	mu       sync.Mutex // guards the fields below
	sessions map[string]*Session
	many     int // once there are this many sessions, those without recent use are dropped
}

// New returns an Observer that has observed nothing.
func New(env *core.Env) *Observer {
	return &Observer{Env: env, Records: observed.New(env.Memory), sessions: map[string]*Session{}}
}

// Observe records that a reply has shown item as the record of key at now. item is nil if
// there is no record. Observe returns the record, or nil if the key is free.
func (o *Observer) Observe(key protocol.Key, item protocol.Item, now decide.Instant) (*protocol.Record, observed.Version, error) {
	if item != nil {
		r, err := o.Decode(key, item)
		if err != nil {
			return nil, observed.Version{}, err
		}
		if !r.Released {
			return &r, o.Records.Note(key, versionOf(r, now)), nil
		}
	}
	o.Records.Forget(key)
	return nil, observed.Version{}, nil
}

// DeadAt returns the monotonic time when the holder of r is dead if it does not renew. A
// reply has shown r at now, when the wall clock showed wall. The version v of r was first
// observed at v.Since. The caller must read wall before now: the time between the two clock
// readings can then only delay a take-over, and never makes it too early.
func (o *Observer) DeadAt(r protocol.Record, v observed.Version, now decide.Instant, wall time.Time) time.Duration {
	return RuleOf(o.Proto, o.Caps).deadAt(r, v.Since.Mono, now.Mono, wall)
}

// LooksDead reports whether the holder of r, or the session with the row r, appears dead
// when the wall clock shows wall: see decide.LooksDead. It relies on the version of the
// record, which contains the time of its write. In layouts with an expiry time, LooksDead
// returns false, because there only the expiry time shows that a holder is dead. For a
// missing session row it returns true, because such a row is never renewed.
func (o *Observer) LooksDead(r protocol.Record, wall time.Time) bool {
	return protocol.IsNoRow(r.Version) || o.Caps.Expiry != layout.WallClock && decide.LooksDead(protocol.VersionTime(r.Version), r.Lease, wall)
}

// versionOf returns the version of r as an observed.Version. A reply has shown r at now.
func versionOf(r protocol.Record, now decide.Instant) observed.Version {
	return observed.Version{ID: r.Version, Grant: GrantOf(r), Since: now}
}

// IsNewGrant reports whether r shows another grant than the earlier record before. before is
// nil if there was no record.
func IsNewGrant(before *protocol.Record, r protocol.Record) bool {
	return before == nil || GrantOf(*before) != GrantOf(r)
}
