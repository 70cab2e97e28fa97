package simulation

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// state is the content of a record in the table, as far as the checker needs it.
type state struct {
	version, grant, owner string
	token                 int64
	lease                 time.Duration
	released              bool
	session               string // session id in the record; set only if the owner's name ends with this id
	by                    int    // id of the process that last wrote the record
}

// changes is called when request r has changed a record. It stores the record's new state in
// c.records, and checks the change.
func (c *checker) changes(r *request, key string, item attributeMap) {
	c.notesEnds(r, item)
	now := &state{
		version: item.text("recordVersionNumber"), grant: item.text("grantId"), owner: item.text("ownerName"),
		token: item.number("fencingToken"), released: item.text("isReleased") == "1", by: r.by.id,
	}
	ms, _ := strconv.ParseInt(item.text("leaseDuration"), 10, 64)
	now.lease = time.Duration(ms) * time.Millisecond
	if id, ok := strings.CutPrefix(key, "leasehold/session/"); ok {
		c.checkSession(r, id, now, item)
		return
	}
	if id := item.text("session"); id != "" && strings.HasSuffix(now.owner, "/"+id) {
		now.session = id
	}
	before := c.records[key]
	if before != nil && *before == (state{now.version, now.grant, now.owner, now.token, now.lease, now.released, now.session, before.by}) {
		c.applies(r, key, "new queue, or request to step down")
		for _, version := range item.waiters() {
			if c.joined[version] == nil {
				c.joined[version] = r.by
			}
		}
		return
	}
	if !now.released {
		c.terms[[2]string{now.owner, strconv.FormatInt(now.token, 10)}] = r.by.id
	}
	c.records[key] = now
	c.applies(r, key, fmt.Sprintf("%+v", *now))
	c.check(r, key, before, now, item)
}

func (c *checker) applies(r *request, key, what string) {
	if r.by.id != lastClient {
		c.lastWritten[key] = time.Now()
	}
	c.history.enter("process %d, sent at %v: %s %s", r.by.id, r.at.Sub(c.began), key, what)
}

// check checks one change of a lock's record against the invariants.
func (c *checker) check(r *request, key string, before, now *state, item attributeMap) {
	pair := [2]string{now.grant, strconv.FormatInt(now.token, 10)}
	if c.versions[now.version] && !now.released && !c.deletes {
		// A late copy of a grant's request may arrive after the grant was released. The table then
		// applies the copy, which writes the version of the grant again, with a higher token. This
		// is allowed if no client trusts the grant at that time.
		if now.version != now.grant || c.pairs[pair] {
			c.note("2: version %s of %s was written twice", now.version, key)
		}
		for _, b := range c.beliefs {
			if b.grant == now.grant && b.lock.Err() == nil && !c.broken[b.grant] {
				c.note("2: grant %s of %s was granted again while a process trusted it", now.grant, key)
			}
		}
	}
	c.versions[now.version] = true
	if now.version == "" || now.owner == "" || now.lease <= 0 {
		c.note("10: %s lacks an attribute of the Java client: %v", key, item)
	}
	if _, ok := item["expiresAt"]; ok && !now.released {
		c.note("10: %s is held, but TTL may delete its record", key)
	}
	if now.session != "" && !now.released && now.lease != time.Hour {
		c.note("10: %s is under a shared lease, but the lease in its record is %v instead of an hour", key, now.lease)
	}
	if !now.released {
		if until := r.supports(r.trust(now.lease)); until.After(c.trusts[now.grant]) {
			c.trusts[now.grant] = until
		}
		if c.over[pair] && !c.isDead(now.session) {
			c.note("8: grant %s of %s was written again after its release was confirmed", now.grant, key)
		}
	}
	if before != nil && before.grant == now.grant {
		if now.released && r.by.id == operator {
			c.broken[now.grant] = true
		}
		return // the change is a renewal or a release: the remaining checks are for new grants
	}

	// The change is a new grant. If it hands the key to the head of the record's queue, its version
	// differs from the grant id. In a hand-over to the local queue, the two are equal.
	if before != nil && r.manner == handsOver && now.version != now.grant {
		c.handed[now.grant] = handed{time.Now(), now.lease - time.Duration(float64(now.lease)*float64(usualMargin)/float64(usualLease))}
	}
	if c.pairs[pair] && !c.deletes {
		c.note("3: grant %s with token %d of %s was applied twice", now.grant, now.token, key)
	}
	c.pairs[pair] = true
	if before != nil && now.token <= before.token {
		c.note("3: token of %s went from %d to %d", key, before.token, now.token)
	}
	if before == nil || before.released {
		return
	}
	for _, b := range c.beliefs {
		if b.grant == before.grant && b.by == r.by && b.lock.Err() == nil {
			c.note("7: process %d replaced its own grant of %s while it trusted it", r.by.id, key)
		}
	}
	if before.owner == now.owner || before.by == r.by.id || c.newestBy(before.grant) == r.by || c.joined[before.grant] == r.by {
		return // allowed: the process itself had acquired, written or received the old grant, and no longer trusts it
	}
	if s := c.sessions[before.session]; s != nil {
		if !s.dead && s.by != r.by {
			c.note("11: process %d took %s over under session %s, which is not marked dead", r.by.id, key, before.session)
		}
		return // allowed: the session is marked dead, or it is an earlier session of the new holder
	}
	if watched, ok := c.watched(r, before.version); (!ok || watched < before.lease-time.Microsecond) && !c.isOver(r, before.version) {
		c.note("7: process %d took %s over after it had observed version %s for only %v of %v", r.by.id, key, before.version, watched, before.lease)
	}
}

// sessionState is the state of a session's row in the table.
type sessionState struct {
	by      *process // process to which the session belongs
	version string
	trust   time.Time // latest time until which an applied renewal allows the process to trust the session
	dead    bool
}

// isDead reports whether the row of a session is marked dead, so that the locks under the
// session are free. The caller must hold c.mu.
func (c *checker) isDead(session string) bool {
	s := c.sessions[session]
	return s != nil && s.dead
}

// checkSession checks one change of the row of a session against the invariants.
func (c *checker) checkSession(r *request, id string, now *state, item attributeMap) {
	s := c.sessions[id]
	if s == nil {
		s = &sessionState{by: r.by}
		c.sessions[id] = s
	}
	before := s.version
	s.version = now.version
	c.applies(r, "session "+id, fmt.Sprintf("%+v dead %q", *now, item.text("dead")))
	if before == now.version && item.text("dead") == "" {
		return // the change is a notice that a lock was broken
	}
	if item.text("kind") != "session" || now.version == "" || now.owner == "" || now.lease <= 0 {
		c.note("10: session %s lacks an attribute: %v", id, item)
	}
	if item.text("dead") == "" {
		if s.dead {
			c.note("11: session %s was renewed after its dead mark", id)
		}
		if until := r.supports(r.trust(now.lease)); until.After(s.trust) {
			s.trust = until
		}
		return
	}
	s.dead = true
	for _, b := range c.beliefs {
		if b.session == id && b.lock.Err() == nil {
			c.note("11: process %d trusts grant %s under session %s, which is marked dead", b.by.id, b.grant, id)
		}
	}
	if s.by == r.by {
		return
	}
	if watched, ok := c.watched(r, before); (!ok || watched < now.lease-time.Microsecond) && !c.isOver(r, before) {
		c.note("11: process %d marked session %s dead after it had observed it for only %v of %v", r.by.id, id, watched, now.lease)
	}
}

// seenBy is a pair of a version and a process that has seen the version in a reply.
type seenBy struct {
	process int
	version string
}

// sees records the first time at which a reply shows a version to a process.
// The caller must hold c.mu.
func (c *checker) sees(by *process, version string) {
	this := seenBy{by.id, version}
	if _, ok := c.seen[this]; !ok && version != "" {
		c.seen[this] = time.Now()
	}
}

// watched returns how long the sender of r had known the version when it sent r, by the sender's
// clock. This time begins at the first reply that showed the version. If there is no such reply,
// watched returns false. The caller must hold c.mu.
func (c *checker) watched(r *request, version string) (time.Duration, bool) {
	first, ok := c.seen[seenBy{r.by.id, version}]
	return time.Duration(float64(r.at.Sub(first)) * r.by.rate), ok
}
