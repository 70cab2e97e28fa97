package hold

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// keyInDoubt is a key for which attempts of unknown outcome were sent under a session. An applied
// attempt blocks the key while the session is renewed. So this client checks the key until all
// attempts are resolved, or too old to be applied.
type keyInDoubt struct {
	s     *session
	key   protocol.Key
	pause time.Duration // pause before the next check; s.mu guards both pause and timer
	timer *time.Timer
}

// Pauses between two checks of a key in doubt. They are short at first, because another
// client may want the key. They grow, because few requests arrive minutes late.
const (
	firstPause   = 5 * time.Second
	longestPause = 2 * time.Minute
)

// CheckSoon is called after this client has abandoned an attempt to acquire the key. It
// starts checks of the key, so that the attempt does not block the key. The pauses between
// the checks grow.
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

// due is called by the timer. It checks the key, and sets the timer for the next check if an
// attempt may still be applied or still holds the key. It does nothing once the session has
// ended, because the end frees the session's keys.
func (u *keyInDoubt) due() {
	c := u.s.c
	if u.s.lease.Ended() != nil || !c.Enter() {
		return
	}
	defer c.Leave()
	u.s.mu.Lock()
	u.pause = min(durations.Times(u.pause, 2), longestPause) // before the check: CheckSoon may shorten the pause during the check
	u.s.mu.Unlock()
	free := u.check()
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	if now := c.Now().Mono; !free {
		c.keys.InDoubt.Restart(u.key, now) // otherwise, the next check could no longer recognize an attempt that holds the key
	} else if !c.keys.InDoubt.Any(u.key, now) {
		delete(u.s.inDoubt, u.key)
		return
	}
	u.timer.Reset(u.pause)
}

// check reads the record, and frees the key if one of the abandoned attempts holds it. It
// returns false if an attempt may still hold the key.
func (u *keyInDoubt) check() (free bool) {
	c := u.s.c
	item, err := c.Requests.Read(context.Background(), u.key)
	if err != nil {
		return false
	}
	r, err := c.Decode(u.key, item)
	if item == nil || err != nil || r.Released || r.Owner != u.s.owner || !c.keys.IsInDoubt(u.key, r) {
		return true
	}
	hold := protocol.Hold{Key: u.key, Owner: r.Owner, Grants: []string{r.Grant}, Token: r.Token, Versions: []string{r.Version}}
	reply := c.Requests.Write(context.Background(), c.keys.Freeing(hold, c.DeletesByDefault), attempts.Limit)
	return reply.Effect == decide.Applied || reply.Cause == decide.ConditionFailed
}
