package leasehold

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// stray is a key for which attempts were given up under a session: they may have
// landed, or may yet. No lease frees what they hold while the session goes on
// being renewed, so this client looks after the key for as long as it remembers
// one of them. However many there are, a key has one.
type stray struct {
	c   *Client
	s   *session
	key Key

	mu    sync.Mutex // guards what follows; never held across I/O
	pause time.Duration
	timer *time.Timer
}

// Pauses between two looks at a key: at first as a waiter would have it, then
// rarely, since hardly any request is late by minutes.
const (
	strayFirst = 5 * time.Second
	strayMost  = 2 * time.Minute
)

// giveUp says that nobody believes in these attempts to be granted a key, and
// sees to it that none blocks it for others.
func (c *Client) giveUp(key Key, versions []string) {
	c.orphan(key, versions)
	if c.sharing == nil || len(versions) == 0 {
		return
	}
	if s := c.sharing.get(); s != nil {
		c.strayOf(s, key).soon()
	}
}

// strayOf returns the one of a key under the session.
func (c *Client) strayOf(s *session, key Key) *stray {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.strays[key]
	if st == nil {
		st = &stray{c: c, s: s, key: key}
		s.strays[key] = st
	}
	return st
}

// soon has the key looked at soon, and then more and more rarely.
func (st *stray) soon() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.pause = strayFirst
	if st.timer == nil {
		st.timer = time.AfterFunc(st.pause, st.due)
	} else {
		st.timer.Reset(st.pause)
	}
}

// due looks at the key, and makes the next look due until nothing can be late
// any more. What is left when the session ends is free with all its locks.
func (st *stray) due() {
	if st.s.row.ended() != nil || !st.c.enter() {
		return
	}
	defer st.c.leave()
	if free := st.look(); free && st.isOver() {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.pause = min(2*st.pause, strayMost)
	st.timer.Reset(st.pause)
}

// isOver reports whether no attempt for the key is remembered any more, and
// forgets the stray then.
func (st *stray) isOver() bool {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.c.hasOrphans(st.key) {
		return false
	}
	delete(st.s.strays, st.key)
	return true
}

// look frees the key if one of the attempts holds it, and reports whether none
// is known to.
func (st *stray) look() (free bool) {
	ans := st.c.read(context.Background(), st.key)
	if ans.err != nil {
		return false
	}
	r, err := st.c.decode(st.key, ans.item)
	if ans.item == nil || err != nil || r.Released || r.Owner != st.s.owner || !st.c.isOrphan(st.key, r.Version) {
		return true
	}
	hold := protocol.Hold{Key: protocol.Key(st.key), Owner: r.Owner, Grants: []string{r.Grant}, Token: r.Token, Versions: []string{r.Version}}
	w := st.c.proto.Delete(hold)
	if policy, _ := st.c.checkPolicy(byConfig); policy == keepRecord {
		w = st.c.proto.Release(hold, protocol.Release{Version: protocol.NewVersion(), Now: time.Now(), Expires: st.c.expires(true)})
	}
	ans = st.c.write(context.Background(), w, attemptLimit)
	return ans.Effect == decide.Applied || ans.Cause == decide.ConditionFailed
}
