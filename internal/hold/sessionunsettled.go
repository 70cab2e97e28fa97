package hold

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// unsettledKey is a key with unsettled attempts under a session. While the session is
// renewed, no lease frees what they hold. So this client checks the key for as long as
// it remembers one of them. A key has one unsettledKey for all its attempts.
type unsettledKey struct {
	c   *Client
	s   *session
	key protocol.Key

	mu    sync.Mutex // guards what follows; never held across I/O
	pause time.Duration
	timer *time.Timer
}

// Pauses between two checks of a key: short at first, since a waiter may want the key;
// then long, since hardly any request is late by minutes.
const (
	firstPause   = 5 * time.Second
	longestPause = 2 * time.Minute
)

// CheckSoon sees to it that attempts for key, which were given up, do not block it.
func (c *Client) CheckSoon(key protocol.Key) {
	s := c.session.Load()
	if s == nil {
		return
	}
	s.mu.Lock()
	u := s.unsettled[key]
	if u == nil {
		u = &unsettledKey{c: c, s: s, key: key}
		s.unsettled[key] = u
	}
	s.mu.Unlock()
	u.checkSoon()
}

// checkSoon checks the key soon, and then less and less often.
func (u *unsettledKey) checkSoon() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pause = firstPause
	if u.timer == nil {
		u.timer = time.AfterFunc(u.pause, u.due)
	} else {
		u.timer.Reset(u.pause)
	}
}

// due checks the key, and sets the timer for the next check until no attempt can still be late.
// When the session ends, its keys are free anyway.
func (u *unsettledKey) due() {
	if u.s.lease.Ended() != nil || !u.c.Enter() {
		return
	}
	defer u.c.Leave()
	if free := u.check(); free && u.isOver() {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pause = min(durations.Times(u.pause, 2), longestPause)
	u.timer.Reset(u.pause)
}

// isOver reports whether all attempts for the key are forgotten, so that it need not be checked.
func (u *unsettledKey) isOver() bool {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	if u.c.keys.Unsettled.Any(u.key, u.c.Now().Mono) {
		return false
	}
	delete(u.s.unsettled, u.key)
	return true
}

// check reads the record, and frees the key if one of the attempts holds it. It reports
// whether none holds it now.
func (u *unsettledKey) check() (free bool) {
	item, err := u.c.Requests.Read(context.Background(), u.key)
	if err != nil {
		return false
	}
	r, err := u.c.Decode(u.key, item)
	if item == nil || err != nil || r.Released || r.Owner != u.s.owner || !u.c.keys.IsUnsettled(u.key, r.Version) {
		return true
	}
	hold := protocol.Hold{Key: u.key, Owner: r.Owner, Grants: []string{r.Grant}, Token: r.Token, Versions: []string{r.Version}}
	reply := u.c.Requests.Write(context.Background(), u.c.keys.Freeing(u.c.Proto, hold, u.c.DeletesByDefault), attempts.Limit)
	return reply.Effect == decide.Applied || reply.Cause == decide.ConditionFailed
}
