package cli

import (
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// memory is what commands that observe holders have seen, kept in seen.json: a
// holder that ls --check has watched for its lease need not be watched again by
// break. What counts is the version: once written, it never comes back.
//
// A sighting counts as seenFile's observations do: until this machine reboots, and by
// the clock that it was made with. It is used by one goroutine at a time.
type memory struct {
	file   *seenFile
	read   bool
	before map[string]sighting // by version
	new    []sighting
}

// sighting is an observation as JSON.
type sighting struct {
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
	Version string `json:"version"`
	LeaseMs int64  `json:"leaseMs"`
	Since   string `json:"since"`
	Boot    string `json:"boot,omitempty"`
	BootMs  int64  `json:"bootMs,omitempty"`
}

// newMemory returns the sightings of a store. nil: there is no place for them.
func (a *app) newMemory(s *store) *memory {
	dir, err := stateDir(a.Env)
	if err != nil {
		return nil
	}
	return &memory{file: &seenFile{path: filepath.Join(dir, "seen.json"), store: s.id(), now: a.Now, say: a.say}}
}

// age is how long ago a version was seen first. 0: it was not, or that is not known.
func (m *memory) age(version string) time.Duration {
	if m == nil {
		return 0
	}
	if !m.read {
		m.read, m.before = true, map[string]sighting{}
		for _, e := range m.file.read().Seen {
			if e.Store != m.file.store {
				continue
			}
			var one sighting
			if b, err := json.Marshal(e.Observation); err == nil && json.Unmarshal(b, &one) == nil {
				m.before[one.Version] = one
			}
		}
	}
	one, ok := m.before[version]
	if !ok {
		return 0
	}
	then := observed.Time{Boot: one.Boot, ByBoot: time.Duration(one.BootMs) * time.Millisecond}
	age, _ := then.Age(observed.Time{Boot: machine.ClockID(), ByBoot: machine.Now().Boot}, 0)
	return age
}

// note keeps that a version was seen first so long ago.
func (m *memory) note(key protocol.Key, version string, lease, age time.Duration) {
	if m == nil || version == "" || lease < time.Millisecond {
		return
	}
	by := machine.Now().Boot - age
	m.new = append(m.new, sighting{
		Key: key.Partition, SortKey: key.Sort, Version: version, LeaseMs: lease.Milliseconds(),
		Since: timeJSON(m.file.now().Add(-age)), Boot: machine.ClockID(),
		BootMs: (by + time.Millisecond - 1).Milliseconds(), // rather younger than older
	})
}

// save writes what was noted.
func (m *memory) save() {
	if m == nil || len(m.new) == 0 {
		return
	}
	var entries []seenEntry
	m.file.keys = map[leasehold.Key]bool{}
	for _, one := range m.new {
		e := seenEntry{Store: m.file.store}
		b, err := json.Marshal(one)
		if err != nil || json.Unmarshal(b, &e.Observation) != nil {
			continue
		}
		m.file.keys[e.Observation.Key] = true
		entries = append(entries, e)
	}
	// A command that only looks may run where it cannot write: then the next one
	// observes anew.
	_ = m.file.update(entries)
}
