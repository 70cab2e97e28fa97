package hold

import (
	"context"
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
	s     *session
	key   protocol.Key
	pause time.Duration // guarded by s.mu, as is the timer
	timer *time.Timer
}

// Pauses between two checks of a key. They are short at first, as another client may want
// the key, and long later, as few requests are late by minutes.
const (
	firstPause   = 5 * time.Second
	longestPause = 2 * time.Minute
)

// CheckSoon makes sure that attempts for key that were given up do not block the key. It
// has the key checked soon, and then less and less often.
func (c *Holds) CheckSoon(key protocol.Key) {
	s := c.session.Load()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.inDoubt[key]
	if u == nil {
		u = &keyInDoubt{s: s, key: key}
		u.timer = time.AfterFunc(firstPause, u.due)
		s.inDoubt[key] = u
	}
	u.pause = firstPause
	u.timer.Reset(firstPause)
}

// due checks the key, and sets the timer for the next check if an attempt may still be
// applied. It does nothing once the session has ended, as that frees the session's keys.
func (u *keyInDoubt) due() {
	c := u.s.c
	if u.s.lease.Ended() != nil || !c.Enter() {
		return
	}
	defer c.Leave()
	free := u.check()
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	if free && !c.keys.InDoubt.Any(u.key, c.Now().Mono) {
		delete(u.s.inDoubt, u.key)
		return
	}
	u.pause = min(durations.Times(u.pause, 2), longestPause)
	u.timer.Reset(u.pause)
}

// check reads the record, and frees the key if one of the attempts holds it. It reports
// whether none of the attempts holds the key now.
func (u *keyInDoubt) check() (free bool) {
	c := u.s.c
	item, err := c.Requests.Read(context.Background(), u.key)
	if err != nil {
		return false
	}
	r, err := c.Decode(u.key, item)
	if item == nil || err != nil || r.Released || r.Owner != u.s.owner || !c.keys.IsInDoubt(u.key, r.Version) {
		return true
	}
	hold := protocol.Hold{Key: u.key, Owner: r.Owner, Grants: []string{r.Grant}, Token: r.Token, Versions: []string{r.Version}}
	reply := c.Requests.Write(context.Background(), c.keys.Freeing(c.Proto, hold, c.DeletesByDefault), attempts.Limit)
	return reply.Effect == decide.Applied || reply.Cause == decide.ConditionFailed
}
