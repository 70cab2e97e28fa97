package leasehold

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// isUnsettled reports whether version is an attempt of this client for key that was
// given up before its effect was known. No client treats it as held: if it holds the
// key, this client takes it over at once.
func (c *Client) isUnsettled(key Key, version string) bool {
	return c.unsettled.Has(key, version, c.now().Mono)
}

// leaveUnsettled gives up attempts to acquire a key whose effect is not known, and makes
// sure that none of them blocks the key for others.
func (c *Client) leaveUnsettled(key Key, versions []string) {
	c.unsettled.Add(key, versions, c.now().Mono)
	if c.sharing == nil || len(versions) == 0 {
		return
	}
	if s := c.sharing.get(); s != nil {
		c.unsettledKeyOf(s, key).checkSoon()
	}
}

// freeUnsettled frees the key if one of the attempts holds it. It tries once. An attempt
// that is applied later does not block this client, and others for one lease.
func (c *Client) freeUnsettled(ctx context.Context, want *request, tried []attempt) {
	for len(tried) > 0 {
		owner := tried[0].owner // another one if a session ended meanwhile
		n := slices.IndexFunc(tried, func(a attempt) bool { return a.owner != owner })
		if n < 0 {
			n = len(tried)
		}
		versions := attempts.Versions(tried[:n])
		tried = tried[n:]
		hold := protocol.Hold{Key: protocol.Key(want.key), Owner: owner, Grants: versions, Versions: versions}
		c.write(ctx, c.freeingWrite(want.protoOf(c, ""), hold, want.policy))
	}
}

// freeingWrite frees the key of a grant that this client does not hold: it does not know
// what the record contains.
func (c *Client) freeingWrite(proto protocol.Protocol, hold protocol.Hold, p policy) *protocol.Write {
	if p != keepRecord {
		return proto.Delete(hold)
	}
	return proto.Release(hold, protocol.Release{Version: protocol.NewVersion(), Now: time.Now(), Expires: c.expires(true)})
}

// unsettledKey is a key with unsettled attempts under a session. While the session is
// renewed, no lease frees what they hold. So this client checks the key for as long as
// it remembers one of them. A key has one unsettledKey for all its attempts.
type unsettledKey struct {
	c   *Client
	s   *session
	key Key

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

// unsettledKeyOf returns the unsettledKey of a key under the session.
func (c *Client) unsettledKeyOf(s *session, key Key) *unsettledKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.unsettled[key]
	if u == nil {
		u = &unsettledKey{c: c, s: s, key: key}
		s.unsettled[key] = u
	}
	return u
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

// due checks the key, and sets the timer for the next check until no attempt can be late
// any more. When the session ends, its keys are free anyway.
func (u *unsettledKey) due() {
	if u.s.ended() != nil || !u.c.enter() {
		return
	}
	defer u.c.leave()
	if free := u.check(); free && u.isOver() {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pause = min(2*u.pause, longestPause)
	u.timer.Reset(u.pause)
}

// isOver reports whether no attempt for the key is remembered any more. Then the key is
// not checked any more.
func (u *unsettledKey) isOver() bool {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	if u.c.unsettled.Any(u.key, u.c.now().Mono) {
		return false
	}
	delete(u.s.unsettled, u.key)
	return true
}

// check reads the record, and frees the key if one of the attempts holds it. It reports
// whether none holds it now.
func (u *unsettledKey) check() (free bool) {
	item, err := u.c.requests.Read(context.Background(), protocol.Key(u.key))
	if err != nil {
		return false
	}
	r, err := u.c.decode(u.key, item)
	if item == nil || err != nil || r.Released || r.Owner != u.s.owner || !u.c.isUnsettled(u.key, r.Version) {
		return true
	}
	hold := protocol.Hold{Key: protocol.Key(u.key), Owner: r.Owner, Grants: []string{r.Grant}, Token: r.Token, Versions: []string{r.Version}}
	policy, _ := u.c.checkPolicy(byConfig)
	reply := u.c.write(context.Background(), u.c.freeingWrite(u.c.proto, hold, policy))
	return reply.Effect == decide.Applied || reply.Cause == decide.ConditionFailed
}
