package leasehold

import (
	"cmp"
	"container/list"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/layout"
)

// Observation is a version and when this client first saw it. As JSON it can
// outlive the process: {"key","sortKey","version","leaseMs","since"}, and
// "boot" and "bootMs", the machine's boot and its clock then.
type Observation struct {
	Key     Key
	Version string
	Lease   time.Duration
	Since   time.Time // wall clock

	boot      string        // id of the machine's boot; empty: unknown
	sinceBoot time.Duration // by that boot's clock
}

type observationJSON struct {
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
	Version string `json:"version"`
	LeaseMs int64  `json:"leaseMs"`
	Since   string `json:"since"`
	Boot    string `json:"boot,omitempty"`
	BootMs  int64  `json:"bootMs,omitempty"`
}

// MarshalJSON writes the observation for another process.
func (o Observation) MarshalJSON() ([]byte, error) {
	return json.Marshal(observationJSON{
		Key: o.Key.Partition, SortKey: o.Key.Sort, Version: o.Version, LeaseMs: o.Lease.Milliseconds(),
		Since: formatTime(o.Since), Boot: o.boot, BootMs: o.sinceBoot.Milliseconds(),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Observation) UnmarshalJSON(b []byte) error {
	var in observationJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("leasehold: observation: %w", err)
	}
	since, err := time.Parse(time.RFC3339, in.Since)
	if err != nil {
		return fmt.Errorf("leasehold: observation of %q: since: %w", in.Key, err)
	}
	*o = Observation{
		Key: Key{in.Key, in.SortKey}, Version: in.Version, Lease: time.Duration(in.LeaseMs) * time.Millisecond, Since: since,
		boot: in.Boot, sinceBoot: time.Duration(in.BootMs) * time.Millisecond,
	}
	return nil
}

// maxObservations bounds what a client remembers.
const maxObservations = 10_000

// memory is what a client has observed: of each key the version seen last and
// when it was first seen. It is safe for concurrent use.
type memory struct {
	mu    sync.Mutex
	byKey map[Key]*list.Element // of *sighting
	order *list.List            // newest first
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
}

func newMemory() *memory { return &memory{byKey: map[Key]*list.Element{}, order: list.New()} }

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
	if e, ok := m.byKey[r.Key]; ok {
		before := e.Value.(*sighting)
		if before.version == s.version {
			s.since, s.wall = before.since, before.wall
		}
		if before.grant == s.grant || before.version == s.version {
			s.granted = before.granted
		}
	}
	m.put(&s)
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

// put makes s the newest. m.mu is held.
func (m *memory) put(s *sighting) {
	if e, ok := m.byKey[s.key]; ok {
		e.Value = s
		m.order.MoveToFront(e)
		return
	}
	m.byKey[s.key] = m.order.PushFront(s)
	if m.order.Len() > maxObservations {
		oldest := m.order.Back()
		m.order.Remove(oldest)
		delete(m.byKey, oldest.Value.(*sighting).key)
	}
}

// forget drops what is known of a key that was seen free or taken.
func (m *memory) forget(key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byKey[key]; ok {
		m.order.Remove(e)
		delete(m.byKey, key)
	}
}

// add enters an observation of another process, unless this one has watched
// the same version for longer.
func (m *memory) add(o Observation, since decide.Instant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byKey[o.Key]; ok {
		before := e.Value.(*sighting)
		if before.version != o.Version || before.since.Mono <= since.Mono {
			return
		}
	}
	m.put(&sighting{key: o.Key, version: o.Version, lease: o.Lease, since: since, granted: since.Mono, wall: o.Since})
}

func (m *memory) all() []Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]Observation, 0, m.order.Len())
	for e := m.order.Back(); e != nil; e = e.Prev() {
		out = append(out, e.Value.(*sighting).observation())
	}
	return out
}

func (s sighting) observation() Observation {
	return Observation{
		Key: s.key, Version: s.version, Lease: s.lease, Since: s.wall,
		boot: bootID(), sinceBoot: s.since.Boot,
	}
}

// Observations returns what this client has observed: at most 10,000, newest
// kept.
func (c *Client) Observations() []Observation { return c.seen.all() }

// ImportObservations adds observations of another process. Those of this
// boot of this machine go by its boot clock. Others go by the wall clock,
// made younger by maxSkew, the most by which the two clocks may differ;
// they are ignored if maxSkew is 0. No wall clocks are compared anywhere else.
func (c *Client) ImportObservations(maxSkew time.Duration, obs ...Observation) error {
	if maxSkew < 0 {
		return fmt.Errorf("leasehold: import observations: maxSkew is %v: negative", maxSkew)
	}
	for _, o := range obs {
		key, err := c.checkKey("import observation of", o.Key)
		if err != nil {
			return err
		}
		if c.caps.Expiry == layout.WallClock {
			continue // no observation makes a holder dead there
		}
		if o.Version == "" || o.Lease <= 0 {
			return fmt.Errorf("leasehold: import observation of %v: version or lease is missing", key)
		}
		o.Key = key
		now := c.now()
		var age time.Duration
		switch {
		case o.boot != "" && o.boot == bootID():
			age = now.Boot - o.sinceBoot
		case maxSkew > 0:
			age = time.Since(o.Since) - maxSkew
		default:
			continue
		}
		c.seen.add(o, now.Add(-max(age, 0)))
	}
	return nil
}

// observation returns what is known of a key, the zero Observation for nothing.
func (m *memory) observation(key Key) Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byKey[key]; ok {
		return e.Value.(*sighting).observation()
	}
	return Observation{}
}
