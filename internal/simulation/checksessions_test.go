package simulation

import (
	"fmt"
	"time"
)

// sessionState is the state of a shared lease in the table.
type sessionState struct {
	by      *process // the process whose session it is
	version string
	trust   time.Time // latest time until which the session may be trusted because of an applied renewal
	dead    bool
}

// isDead reports whether the session with the given id is marked dead, so that its locks
// are free. The caller must hold c.mu.
func (c *checker) isDead(session string) bool {
	s := c.sessions[session]
	return s != nil && s.dead
}

// checkSession checks one change of a session's row against the invariants.
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
		return // the change is a notice of a break, not a renewal
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
			c.note("11: process %d believes in grant %s under session %s, which is marked dead", b.by.id, b.grant, id)
		}
	}
	if s.by == r.by {
		return
	}
	if watched, ok := c.watched(r, before); (!ok || watched < now.lease-time.Microsecond) && !c.isOver(r, before) {
		c.note("11: process %d marked session %s dead having watched it for %v of %v", r.by.id, id, watched, now.lease)
	}
}

// seenBy identifies a version that a process has seen.
type seenBy struct {
	process int
	version string
}

// sees records that a reply shows a version to a process. The caller must hold c.mu.
func (c *checker) sees(by *process, version string) {
	this := seenBy{by.id, version}
	if _, ok := c.seen[this]; !ok && version != "" {
		c.seen[this] = time.Now()
	}
}

// watched returns how long the sender of r, by its own clock, had known a version when it
// sent r. It returns false if the sender had not seen the version. The caller must hold
// c.mu.
func (c *checker) watched(r *request, version string) (time.Duration, bool) {
	first, ok := c.seen[seenBy{r.by.id, version}]
	return time.Duration(float64(r.at.Sub(first)) * r.by.rate), ok
}
