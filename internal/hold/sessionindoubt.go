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

// keyInDoubt is a key with attempts in doubt under a session. As long as the session is
// renewed, no lease expires, so the attempts could block the key. For that reason this
// client checks the key for as long as it remembers one of the attempts. All attempts for a
// key share one keyInDoubt.
type keyInDoubt struct {
	c   *Holds
	s   *session
	key protocol.Key

	mu    sync.Mutex // guards the fields below; never held across I/O
	pause time.Duration
	timer *time.Timer
}

// Pauses between two checks of a key. They are short at first, as another client may want
// the key, and long later, as few requests are late by minutes.
const (
	firstPause   = 5 * time.Second
	longestPause = 2 * time.Minute
)

// CheckSoon makes sure that attempts for key that were given up do not block the key.
func (c *Holds) CheckSoon(key protocol.Key) {
	s := c.session.Load()
	if s == nil {
		return
	}
	s.mu.Lock()
	u := s.inDoubt[key]
	if u == nil {
		u = &keyInDoubt{c: c, s: s, key: key}
		s.inDoubt[key] = u
	}
	s.mu.Unlock()
	u.checkSoon()
}

// checkSoon checks the key soon, and then less and less often.
func (u *keyInDoubt) checkSoon() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pause = firstPause
	if u.timer == nil {
		u.timer = time.AfterFunc(u.pause, u.due)
	} else {
		u.timer.Reset(u.pause)
	}
}

// due checks the key, and sets the timer for the next check if an attempt may still be
// applied. It does nothing once the session has ended, as that frees the session's keys.
func (u *keyInDoubt) due() {
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

// isOver reports whether the key need not be checked, because no attempt for it is
// remembered.
func (u *keyInDoubt) isOver() bool {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	if u.c.keys.InDoubt.Any(u.key, u.c.Now().Mono) {
		return false
	}
	delete(u.s.inDoubt, u.key)
	return true
}

// check reads the record, and frees the key if one of the attempts holds it. It reports
// whether none of the attempts holds the key now.
func (u *keyInDoubt) check() (free bool) {
	item, err := u.c.Requests.Read(context.Background(), u.key)
	if err != nil {
		return false
	}
	r, err := u.c.Decode(u.key, item)
	if item == nil || err != nil || r.Released || r.Owner != u.s.owner || !u.c.keys.IsInDoubt(u.key, r.Version) {
		return true
	}
	hold := protocol.Hold{Key: u.key, Owner: r.Owner, Grants: []string{r.Grant}, Token: r.Token, Versions: []string{r.Version}}
	reply := u.c.Requests.Write(context.Background(), u.c.keys.Freeing(u.c.Proto, hold, u.c.DeletesByDefault), attempts.Limit)
	return reply.Effect == decide.Applied || reply.Cause == decide.ConditionFailed
}
