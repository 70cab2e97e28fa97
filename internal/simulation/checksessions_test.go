package simulation

import (
	"fmt"
	"time"
)

// sessionState is the state of a session's row in the table.
type sessionState struct {
	by      *process // process to which the session belongs
	version string
	trust   time.Time // latest time until which an applied renewal allows the process to trust the session
	dead    bool
}

// isDead reports whether the row of a session is marked dead, so that the locks under it
// are free. The caller must hold c.mu.
func (c *checker) isDead(session string) bool {
	s := c.sessions[session]
	return s != nil && s.dead
}

// checkSession checks one change of the row of a session against the
// invariants.
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
		return // the change adds a notice that a lock was broken; it is no renewal
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

// seenBy is a pair of a version and a process that has seen the version in a
// reply.
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

// watched returns for how long the sender of r had known a version when it sent r. The
// time is by the sender's own clock. If the sender has not seen the version, watched
// returns false. The caller must hold c.mu.
func (c *checker) watched(r *request, version string) (time.Duration, bool) {
	first, ok := c.seen[seenBy{r.by.id, version}]
	return time.Duration(float64(r.at.Sub(first)) * r.by.rate), ok
}
