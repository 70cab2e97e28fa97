package cli

import (
	"encoding/json"
	"time"

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
	before map[string]observed.Time // when each version was seen first; nil: not read yet
	new    []observed.Sighting
}

// newMemory returns the sightings of a store. nil: there is no place for them.
func (a *app) newMemory(s *store) *memory {
	file := a.newSeenFile(s)
	if file == nil {
		return nil
	}
	return &memory{file: file}
}

// age is how long ago a version was seen first. 0: it was not, or that is not known.
func (m *memory) age(version string) time.Duration {
	if m == nil {
		return 0
	}
	if m.before == nil {
		m.before = map[string]observed.Time{}
		for _, e := range m.file.read().Seen {
			if e.Store != m.file.store {
				continue
			}
			var one observed.Sighting
			if b, err := json.Marshal(e.Observation); err == nil && json.Unmarshal(b, &one) == nil {
				m.before[one.Version] = observed.Time{Boot: one.Boot, ByBoot: one.ByBoot()}
			}
		}
	}
	// A version that is not there has no clock, so its age is not known.
	return m.before[version].Age(observed.Time{Boot: machine.ClockID(), ByBoot: machine.Now().Boot}, 0)
}

// note keeps that a version was seen first so long ago.
func (m *memory) note(key protocol.Key, version string, lease, age time.Duration) {
	if m == nil || version == "" || lease < time.Millisecond {
		return
	}
	m.new = append(m.new, observed.Sighting{
		Key: key.Partition, SortKey: key.Sort, Version: version, LeaseMs: lease.Milliseconds(),
		Since: timeJSON(m.file.now().Add(-age)), Boot: machine.ClockID(),
		BootMs: observed.BootMs(machine.Now().Boot - age),
	})
}

// save writes what was noted.
func (m *memory) save() {
	if m == nil || len(m.new) == 0 {
		return
	}
	var entries []seenEntry
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
