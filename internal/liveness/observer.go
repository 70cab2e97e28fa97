package liveness

import (
	"cmp"
	"container/list"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Rule decides when a holder is dead. All code that observes holders uses Rule, and no other
// code computes the end of an observed lease.
type Rule struct {
	Clocked bool          // records contain an expiry time
	Skew    time.Duration // largest error of this machine's wall clock; 0 if no bound of the error is known
	Step    time.Duration // unit in which records store expiry times; used only if Clocked
}

// RuleOf returns the Rule for the records of a layout.
func RuleOf(proto protocol.Protocol, caps layout.Capabilities) Rule {
	return Rule{Clocked: caps.Expiry == layout.WallClock, Skew: proto.Skew(), Step: caps.LeaseStep}
}

// deadAt returns the monotonic time from which the holder of r is dead if it does not renew. That
// time may be past. The parameter "since" is the time when the version of r was first read. The
// parameters now and wall are readings of both clocks at one moment.
func (by Rule) deadAt(r protocol.Record, since, now time.Duration, wall time.Time) time.Duration {
	if by.Clocked {
		return decide.DeadByClock(r.ExpiresAt, by.Skew, by.Step, wall, now)
	}
	dead := decide.DeadByVersion(since, r.Lease)
	if by.Skew > 0 && !r.LeaseEnds.IsZero() {
		dead = min(dead, decide.DeadByClock(r.LeaseEnds, by.Skew, 0, wall, now))
	}
	return dead
}

// GrantOf returns a string that identifies a grant of a key, and that renewals do not change. For a
// grant without an id, by another library, it is the owner, perhaps empty. But in layouts with an
// expiry time it is the version, because libraries of these layouts never renew.
func GrantOf(r protocol.Record) string {
	if r.Lease > 0 {
		return cmp.Or(r.Grant, r.Owner)
	}
	return cmp.Or(r.Grant, r.Version)
}

// SessionRow decodes item as the row of a session. The item must be nil if the table contains no
// row of the session. SessionRow then returns protocol.NoRow, with the duration "missing" as the
// lease.
func SessionRow(proto protocol.Native, item protocol.Item, missing time.Duration) (protocol.Record, error) {
	if item == nil {
		return protocol.NoRow(missing), nil
	}
	return proto.Session().Decode(item)
}

// Reading is one read of a record or of a session's row: when the request was sent, and when
// its answer came.
type Reading struct{ Asked, Answered time.Time }

// Beat is an observer's knowledge of one holder's renewals. Each renewal writes a new
// version of the record.
type Beat struct {
	Version  string
	Since    time.Time     // when this version was first read; zero if no version was read yet
	Until    time.Time     // the holder is dead if the record still has this version at that time
	Lease    time.Duration // how long the holder may take from this version to the next renewal
	Renewals int           // number of renewals since the observer first read the grant
	Dead     bool
}

// Next returns the beat that follows b after a reading of r, the holder's record or session row.
//
// The lease of a version counts from the first answer that showed the version. The holder is dead
// if a request sent after the end of this lease still reads that version. A request sent before the
// end proves nothing: the holder may have renewed after DynamoDB read the record. A missing row
// counts as a version, but not as a renewal.
func (by Rule) Next(b Beat, r protocol.Record, at Reading) Beat {
	first := b.Since.IsZero()
	if first || b.Version != r.Version {
		b.Version, b.Since = r.Version, at.Answered
		if !first && !protocol.IsNoRow(r.Version) {
			b.Renewals++
		}
	}
	left := by.deadAt(r, b.Since.Sub(at.Asked), 0, at.Asked)
	b.Until, b.Lease, b.Dead = at.Asked.Add(left), r.Lease, r.Released || left <= 0
	if by.Clocked {
		b.Until = at.Asked.Round(0).Add(left) // the expiry time in the record is a wall-clock time: Round removes the monotonic reading
		from := r.GrantedAt
		if from.IsZero() || b.Renewals > 0 {
			from = b.Since
		}
		b.Lease = max(b.Until.Sub(from), 0)
	}
	return b
}

// Observer stores what one client has observed of holders. It is safe for concurrent use.
type Observer struct {
	*core.Env
	Records *Versions

	mu       sync.Mutex // guards the fields below
	sessions map[string]*Session
	many     int // when there are this many sessions, the Observer drops those without recent use
}

// New returns an Observer that has observed nothing.
func New(env *core.Env) *Observer {
	return &Observer{Env: env, Records: NewVersions(env.Memory), sessions: map[string]*Session{}}
}

// Observe decodes item as the record of key. The parameter now is the time when the reply with this
// item arrived. If the key is held, Observe also returns when the version in item was first seen.
// If item is nil, Observe returns an empty released record.
func (o *Observer) Observe(key protocol.Key, item protocol.Item, now decide.Instant) (protocol.Record, Version, error) {
	r := protocol.Record{Released: true}
	if item != nil {
		var err error
		if r, err = o.Decode(key, item); err != nil {
			return r, Version{}, err
		}
	}
	if r.Released {
		o.Records.Forget(key)
		return r, Version{}, nil
	}
	return r, o.Records.Note(key, r, now), nil
}

// DeadAt returns the monotonic time from which the holder of r is dead if it does not renew. The
// caller must read the wall clock first: time between the readings for wall and now then only
// delays a takeover, and the result is never too early.
func (o *Observer) DeadAt(r protocol.Record, v Version, now decide.Instant, wall time.Time) time.Duration {
	return RuleOf(o.Proto, o.Caps).deadAt(r, v.Since.Mono, now.Mono, wall)
}

// LooksDead reports whether the holder or session of r appears dead at the wall-clock time wall
// (see decide.LooksDead). A missing session row appears dead, because it is never renewed. In
// layouts with an expiry time, only that time shows a dead holder, so LooksDead returns false.
func (o *Observer) LooksDead(r protocol.Record, wall time.Time) bool {
	return protocol.IsNoRow(r.Version) || o.Caps.Expiry != layout.WallClock && decide.LooksDead(protocol.VersionTime(r.Version), r.Lease, wall)
}

// IsNewGrant reports whether r shows another grant than an earlier record of the key. The parameter
// "before" is that record, or nil if there was none.
func IsNewGrant(before *protocol.Record, r protocol.Record) bool {
	return before == nil || GrantOf(*before) != GrantOf(r)
}

// Version is a version of a record, with the time when the client first read it.
type Version struct {
	Since   decide.Instant // time when the client first read this version
	Granted time.Duration  // monotonic time when the client first read this grant

	id, grant string // version and grant (see GrantOf) in the record
}

// Versions contains the last version of each key's record that one client has read. It compares
// versions and grants, reads no clock, and does not decide which holders are dead. It is safe for
// concurrent use.
//
// A waiter pins the key that it polls. The number of keys that are not pinned is limited: if there
// are too many, Versions forgets the oldest of them. If it forgot a polled key between two polls,
// the lease would count from the next poll again, and the waiter might never find the holder dead.
type Versions struct {
	most int // maximum number of keys that are not pinned

	mu    sync.Mutex
	byKey map[protocol.Key]*entry
	idle  *list.List           // entries of keys that are not pinned, newest first
	pins  map[protocol.Key]int // by key, the number of calls of Pin minus the number of calls of Unpin
}

// entry is the last version of one key. After its creation, only the field "idle" changes.
type entry struct {
	key protocol.Key
	Version
	idle *list.Element // element of this entry in Versions.idle; nil while the key is pinned
}

// NewVersions returns an empty Versions. The parameter "most" is the maximum number of keys that
// are not pinned.
func NewVersions(most int) *Versions {
	return &Versions{most: most, byKey: map[protocol.Key]*entry{}, idle: list.New(), pins: map[protocol.Key]int{}}
}

// Pin makes v keep the version of key until Unpin has been called as often as Pin. The key may be
// pinned before Note records its first version.
func (v *Versions) Pin(key protocol.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pins[key]++
	if e := v.byKey[key]; e != nil && e.idle != nil {
		v.idle.Remove(e.idle)
		e.idle = nil
	}
}

// Unpin undoes one call of Pin for key.
func (v *Versions) Unpin(key protocol.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pins[key]--
	if v.pins[key] > 0 {
		return
	}
	delete(v.pins, key)
	if e := v.byKey[key]; e != nil {
		v.rest(e)
	}
}

// Note records that a reply has shown the record r of key. The parameter "now" is the time of the
// reply. Note returns the times when the client first read this version and this grant.
func (v *Versions) Note(key protocol.Key, r protocol.Record, now decide.Instant) Version {
	o := Version{Since: now, Granted: now.Mono, id: r.Version, grant: GrantOf(r)}
	v.mu.Lock()
	defer v.mu.Unlock()
	if before := v.byKey[key]; before != nil {
		if before.id == o.id {
			o.Since = before.Since
		}
		if before.grant == o.grant || before.id == o.id {
			o.Granted = before.Granted
		}
		v.remove(before)
	}
	e := &entry{key: key, Version: o}
	v.byKey[key] = e
	if v.pins[key] == 0 {
		v.rest(e)
	}
	return o
}

// Forget removes the version of key. It must be called if the key is free, or if the table no
// longer contains the record.
func (v *Versions) Forget(key protocol.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.byKey[key]; e != nil {
		v.remove(e)
	}
}

// rest puts e at the front of v.idle, the list of entries whose keys are not pinned. If the list
// then has more than v.most entries, rest removes the oldest. The caller must hold v.mu.
func (v *Versions) rest(e *entry) {
	e.idle = v.idle.PushFront(e)
	if v.idle.Len() > v.most {
		v.remove(v.idle.Back().Value.(*entry))
	}
}

// remove removes e from v. The caller must hold v.mu.
func (v *Versions) remove(e *entry) {
	delete(v.byKey, e.key)
	if e.idle != nil {
		v.idle.Remove(e.idle)
	}
}
