package leasehold

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// rememberFor is how long an attempt without an answer is remembered after it
// was given up: no network keeps a request for as long.
const rememberFor = 15 * time.Minute

// attempts remembers versions of attempts that were given up before their
// effect was known, by what they were for. It is safe for concurrent use.
type attempts[K comparable] struct {
	mu   sync.Mutex
	made []givenUp[K] // oldest first
}

type givenUp[K comparable] struct {
	of      K
	version string
	at      time.Duration // monotonic
}

func (a *attempts[K]) add(of K, versions []string, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(now)
	for _, v := range versions {
		a.made = append(a.made, givenUp[K]{of, v, now})
	}
}

// forget drops what is too old to matter. a.mu is held.
func (a *attempts[K]) forget(now time.Duration) {
	fresh := slices.IndexFunc(a.made, func(g givenUp[K]) bool { return now-g.at <= rememberFor })
	if fresh < 0 {
		fresh = len(a.made)
	}
	a.made = slices.Delete(a.made, 0, fresh)
}

// of returns the versions tried for k, oldest first.
func (a *attempts[K]) of(k K, now time.Duration) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(now)
	var versions []string
	for _, g := range a.made {
		if g.of == k {
			versions = append(versions, g.version)
		}
	}
	return versions
}

// drop forgets a version that turned out to have landed, and is held.
func (a *attempts[K]) drop(version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made = slices.DeleteFunc(a.made, func(g givenUp[K]) bool { return g.version == version })
}

// orphan says that nobody believes in these versions of a key: seen as holder,
// one is taken over at once.
func (c *Client) orphan(key Key, versions []string) { c.orphans.add(key, versions, c.now().Mono) }

func (c *Client) isOrphan(key Key, version string) bool {
	return slices.Contains(c.orphans.of(key, c.now().Mono), version)
}

// releaseOrphans frees the key if one of the attempts holds it. It is tried
// once: one that lands later blocks this client not at all, others for one
// lease.
func (c *Client) releaseOrphans(ctx context.Context, want *request, tried []attempt) {
	for len(tried) > 0 {
		owner := tried[0].owner // another one if a session ended meanwhile
		n := slices.IndexFunc(tried, func(a attempt) bool { return a.owner != owner })
		if n < 0 {
			n = len(tried)
		}
		versions := versionsOf(tried[:n])
		tried = tried[n:]
		hold := protocol.Hold{Key: protocol.Key(want.key), Owner: owner, Grants: versions, Versions: versions}
		p := want.protoOf(c, "")
		w := p.Delete(hold)
		if want.policy == keepRecord {
			w = p.Release(hold, protocol.Release{Version: protocol.NewVersion(), Now: time.Now(), Expires: c.expires(true)})
		}
		c.write(ctx, w, attemptLimit)
	}
}
