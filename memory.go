package leasehold

import (
	"cmp"
	"container/list"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// maxObservations bounds what a client remembers of keys that it does not watch.
const maxObservations = 10_000

// memory is what a client has observed: of each key the version seen last and
// when it was first seen. What is being watched is never forgotten in favour of
// other keys: its holder would seem to have been seen just now, and to be dead
// only a lease later, for ever. It is safe for concurrent use.
type memory struct {
	most int // sightings of keys that nobody watches

	mu      sync.Mutex
	byKey   map[Key]*sighting
	idle    *list.List  // of those that nobody watches, newest first
	watched map[Key]int // by how many
	entered int         // sightings ever, to put them in order
}

// sighting is a version and when it was first seen, by every clock there is.
type sighting struct {
	key     Key
	version string
	grant   string // what stays the same while one grant is renewed
	lease   time.Duration
	since   decide.Instant // the version's first sight
	granted time.Duration  // the grant's, monotonic
	wall    time.Time

	nth  int           // of those entered
	idle *list.Element // its place among those that nobody watches
}

func newMemory(most int) *memory {
	return &memory{most: most, byKey: map[Key]*sighting{}, idle: list.New(), watched: map[Key]int{}}
}

// watch keeps what is known, or will be, of a key until as many calls of unwatch.
func (m *memory) watch(key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched[key]++
	if s := m.byKey[key]; s != nil && s.idle != nil {
		m.idle.Remove(s.idle)
		s.idle = nil
	}
}

func (m *memory) unwatch(key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched[key]--
	if m.watched[key] > 0 {
		return
	}
	delete(m.watched, key)
	if s := m.byKey[key]; s != nil {
		m.rest(s)
	}
}

// rest makes s the newest of those that nobody watches, which the oldest leaves
// if they are too many. m.mu is held.
func (m *memory) rest(s *sighting) {
	s.idle = m.idle.PushFront(s)
	if m.idle.Len() > m.most {
		m.remove(m.idle.Back().Value.(*sighting))
	}
}

// remove forgets s. m.mu is held.
func (m *memory) remove(s *sighting) {
	delete(m.byKey, s.key)
	if s.idle != nil {
		m.idle.Remove(s.idle)
	}
}

// note enters a record that a reply has shown at now, and returns what is
// known of it. The first sight of a version starts its clock, a later one does
// not start it again.
func (m *memory) note(r Record, now decide.Instant) sighting {
	s := sighting{
		key: r.Key, version: r.Version, grant: grantOf(r), lease: r.Lease,
		since: now, granted: now.Mono, wall: time.Now().Round(0),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.byKey[r.Key]; before != nil {
		if before.version == s.version {
			s.since, s.wall = before.since, before.wall
		}
		if before.grant == s.grant || before.version == s.version {
			s.granted = before.granted
		}
	}
	m.put(s)
	return s
}

// grantOf identifies the grant. A foreign holder has its owner's name alone,
// which may be empty, or where it never renews, a version that stays.
func grantOf(r Record) string {
	if r.Lease > 0 {
		return cmp.Or(r.Grant, r.Owner)
	}
	return cmp.Or(r.Grant, r.Owner, r.Version)
}

// put makes s what is known of its key, and the newest. m.mu is held.
func (m *memory) put(s sighting) {
	if before := m.byKey[s.key]; before != nil {
		m.remove(before)
	}
	m.entered++
	s.nth, s.idle = m.entered, nil
	m.byKey[s.key] = &s
	if m.watched[s.key] == 0 {
		m.rest(&s)
	}
}

// forget drops what is known of a key that was seen free or taken.
func (m *memory) forget(key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.byKey[key]; s != nil {
		m.remove(s)
	}
}

// add enters an observation of another process, unless this one has watched
// the same version for longer.
func (m *memory) add(o Observation, since decide.Instant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.byKey[o.Key]; before != nil && (before.version != o.Version || before.since.Mono <= since.Mono) {
		return
	}
	m.put(sighting{key: o.Key, version: o.Version, lease: o.Lease, since: since, granted: since.Mono, wall: o.Since})
}

// observation returns what is known of a key, the zero Observation for nothing.
func (m *memory) observation(key Key) Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.byKey[key]; s != nil {
		return s.observation()
	}
	return Observation{}
}

// all returns the newest of what is known, newest last.
func (m *memory) all() []Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := make([]*sighting, 0, len(m.byKey))
	for _, s := range m.byKey {
		seen = append(seen, s)
	}
	slices.SortFunc(seen, func(a, b *sighting) int { return cmp.Compare(a.nth, b.nth) })
	seen = seen[max(len(seen)-m.most, 0):]
	out := make([]Observation, len(seen))
	for i, s := range seen {
		out[i] = s.observation()
	}
	return out
}

func (s *sighting) observation() Observation {
	return Observation{
		Key: s.key, Version: s.version, Lease: s.lease, Since: s.wall,
		boot: machine.ClockID(), sinceBoot: s.since.Boot,
	}
}

// watching is what one waiter has a memory keep.
type watching struct {
	m    *memory
	keys []Key
}

// only watches these keys, and none of those before.
func (w *watching) only(keys ...Key) {
	before := w.keys
	w.keys = keys
	for _, key := range keys {
		w.m.watch(key)
	}
	for _, key := range before {
		w.m.unwatch(key)
	}
}
