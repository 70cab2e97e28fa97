package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold-go/leasehold"
)

// rowState is a read/write lock as the table has it.
type rowState struct {
	token   int64
	holders map[string]rowEntry // by grant
}

type rowEntry struct {
	version, owner string
	token          int64
	lease          time.Duration
	writes         bool
}

// String lists the holders in the order in which they were granted.
func (s *rowState) String() string {
	holders := slices.Collect(maps.Keys(s.holders))
	slices.SortFunc(holders, func(a, b string) int { return cmp.Compare(s.holders[a].token, s.holders[b].token) })
	out := fmt.Sprintf("token %d", s.token)
	for _, grant := range holders {
		out += fmt.Sprintf(", grant %s %+v", grant, s.holders[grant])
	}
	return out
}

// believesToRead enters a reader's lock that a process was given.
func (c *checker) believesToRead(by *process, lock *leasehold.Lock) {
	c.mu.Lock()
	before := len(c.beliefs)
	c.mu.Unlock()
	c.believes(by, lock)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.beliefs[before:] {
		if b.lock == lock {
			b.shared = true
		}
	}
}

// changesRow enters the new state of a read/write lock, and holds the change
// against the invariants. c.mu is held.
func (c *checker) changesRow(r *request, key string, item attributeMap) {
	before := c.rows[key]
	now := rowOf(item)
	if before == nil {
		before = &rowState{}
	}
	c.rows[key] = now
	intent := item.entries("intent")
	delete(intent, "leaseEnds") // a history names versions by numbers, and there they are not spelled as such
	c.applies(r, key, fmt.Sprintf("%v intent %v", now, intent))

	for _, name := range []string{"ownerName", "leaseDuration", "recordVersionNumber"} {
		if item.text(name) == "" {
			c.note("10: %s lacks %s: %v", key, name, item)
		}
	}
	if item["expiresAt"] != nil && len(now.holders) > 0 {
		c.note("10: %s is held and may be collected by TTL", key)
	}
	writers := 0
	for _, e := range now.holders {
		if e.writes {
			writers++
		}
	}
	if writers > 1 || writers == 1 && len(now.holders) > 1 {
		c.note("1: %s shows a writer beside others: %+v", key, *now)
	}
	granted := 0
	for _, grant := range slices.Sorted(maps.Keys(now.holders)) {
		e := now.holders[grant]
		if was, ok := before.holders[grant]; ok {
			if was.token != e.token {
				c.note("3: the token of grant %s of %s went from %d to %d", grant, key, was.token, e.token)
			}
		} else {
			granted++
			r.by.owner = e.owner
			c.grantedRow(key, grant, e, before)
		}
		if until := r.supports(r.trust(e.lease)); before.holders[grant].version != e.version && until.After(c.trusts[grant]) {
			c.trusts[grant] = until
		}
	}
	if granted > 1 || granted == 0 && now.token != before.token && before.token != 0 {
		c.note("3: %d grants of %s with one write, token %d after %d", granted, key, now.token, before.token)
	}
	for _, grant := range slices.Sorted(maps.Keys(before.holders)) {
		if _, ok := now.holders[grant]; !ok && (granted > 0 || before.holders[grant].owner != r.by.owner) { // nobody has left
			c.evicted(r, key, grant, before.holders[grant])
		}
	}
}

// grantedRow holds a grant against those before it. c.mu is held.
func (c *checker) grantedRow(key, grant string, e rowEntry, before *rowState) {
	pair := [2]string{grant, strconv.FormatInt(e.token, 10)}
	if e.token <= before.token || c.pairs[pair] {
		c.note("3: grant %s of %s has token %d after %d, installed before: %v", grant, key, e.token, before.token, c.pairs[pair])
	}
	c.pairs[pair] = true
	if c.over[pair] {
		c.note("8: grant %s of %s lives on after its release was confirmed", grant, key)
	}
	for _, b := range c.beliefs {
		if b.grant == grant && b.lock.Err() == nil {
			c.note("2: grant %s of %s was granted again while it was believed in", grant, key)
		}
	}
}

// evicted holds the removal of an entry by another against what its process has
// seen. c.mu is held.
func (c *checker) evicted(r *request, key, grant string, e rowEntry) {
	for _, b := range c.beliefs {
		if b.grant == grant && b.lock.Err() == nil {
			c.note("1: process %d evicted grant %s of %s, which process %d believes in", r.by.id, grant, key, b.by.id)
		}
	}
	if e.owner == r.by.owner {
		return // an attempt of its own that nobody believed in
	}
	if watched, ok := c.watched(r, e.version); (!ok || watched < e.lease-time.Microsecond) && !c.isOver(r, e.version) {
		c.note("7: process %d evicted grant %s of %s having watched version %s for %v of %v", r.by.id, grant, key, e.version, watched, e.lease)
	}
}

// rowReleased enters a Release of a read/write lock that returned nil.
func (c *checker) rowReleased(lock *leasehold.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	grant := lock.Record().Grant
	if row := c.rows[lock.Key().Partition]; row != nil && row.holders[grant].token == lock.Token() {
		c.note("8: Release of grant %s returned nil, and the row shows it held", grant)
	}
	c.over[[2]string{grant, strconv.FormatInt(lock.Token(), 10)}] = true
}

func rowOf(item attributeMap) *rowState {
	s := &rowState{token: item.number("fencingToken"), holders: map[string]rowEntry{}}
	entry := func(m attributeMap, token int64, writes bool) rowEntry {
		ms, _ := strconv.ParseInt(m.text("leaseDuration"), 10, 64)
		return rowEntry{m.text("recordVersionNumber"), m.text("ownerName"), token, time.Duration(ms) * time.Millisecond, writes}
	}
	if w := item.entries("writer"); w.text("grantId") != "" {
		s.holders[w.text("grantId")] = entry(w, s.token, true)
	}
	readers, tokens := item.entries("readers"), item.entries("tokens")
	for grant := range readers {
		s.holders[grant] = entry(readers.entries(grant), tokens.number(grant), false)
	}
	return s
}

// entries reads a map.
func (m attributeMap) entries(name string) attributeMap {
	inner, _ := m[name]["M"].(map[string]any)
	out := attributeMap{}
	for name, v := range inner {
		out[name] = v.(map[string]any)
	}
	return out
}

// rowVersions are the versions of all entries of a read/write lock.
func (m attributeMap) rowVersions() []string {
	if m.text("kind") != "rw" {
		return nil
	}
	var versions []string
	for _, e := range rowOf(m).holders {
		versions = append(versions, e.version)
	}
	return versions
}
