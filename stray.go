package leasehold

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// stray is what became of a call that was given up under a session: attempts
// that may have landed, or may yet. No lease frees what they hold while the
// session goes on being renewed, so this client looks after the key for as long
// as a request may be on its way.
type stray struct {
	c        *Client
	s        *session
	key      Key
	versions []string
	since    decide.Instant // given up
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
		st := &stray{c: c, s: s, key: key, versions: slices.Clone(versions), since: c.now()}
		st.after(strayFirst)
	}
}

// after looks at the key after a pause, and again until nothing can be late any
// more. What is left when the session ends is free with all its locks.
func (st *stray) after(d time.Duration) {
	time.AfterFunc(d, func() {
		if st.s.row.ended() != nil || !st.c.enter() {
			return
		}
		defer st.c.leave()
		late := st.c.now().Since(st.since) > rememberFor
		if free := st.look(); !free || !late {
			st.after(min(2*d, strayMost))
		}
	})
}

// look frees the key if one of the attempts holds it, and reports whether none
// is known to.
func (st *stray) look() (free bool) {
	ans := st.c.read(context.Background(), st.key)
	if ans.err != nil {
		return false
	}
	r, err := st.c.decode(st.key, ans.item)
	if ans.item == nil || err != nil || r.Released || r.Owner != st.s.owner || !slices.Contains(st.versions, r.Version) {
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
