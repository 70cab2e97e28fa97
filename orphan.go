package leasehold

import (
	"cmp"
	"container/list"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// rememberFor is how long an attempt without an answer is remembered after it
// was given up: no network keeps a request for as long. It goes by the clock
// that stands still in suspend: to remember one for longer does no harm, to
// forget one early costs a lease.
const rememberFor = 15 * time.Minute

// maxGivenUp bounds how many are remembered, the newest. One that was forgotten
// and lands yet blocks its key for one lease.
const maxGivenUp = 100_000

// attempts remembers versions of attempts that were given up before their
// effect was known, by what they were for. What a question about one of them
// costs does not grow with the number of the others. It is safe for concurrent
// use.
type attempts[K comparable] struct {
	mu   sync.Mutex
	made list.List                      // of givenUp[K], oldest first
	byOf map[K]map[string]*list.Element // and by version
	nth  int                            // of those ever made
}

type givenUp[K comparable] struct {
	of      K
	version string
	at      time.Duration // monotonic
	nth     int
}

func (a *attempts[K]) add(of K, versions []string, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(now)
	if a.byOf == nil {
		a.byOf = map[K]map[string]*list.Element{}
	}
	for _, v := range versions {
		a.remove(of, v) // given up once more: the last time counts
		if a.byOf[of] == nil {
			a.byOf[of] = map[string]*list.Element{}
		}
		a.nth++
		a.byOf[of][v] = a.made.PushBack(givenUp[K]{of, v, now, a.nth})
	}
	for a.made.Len() > maxGivenUp {
		a.removeOldest()
	}
}

// forget drops what is too old to matter. a.mu is held.
func (a *attempts[K]) forget(now time.Duration) {
	for e := a.made.Front(); e != nil && now-e.Value.(givenUp[K]).at > rememberFor; e = a.made.Front() {
		a.removeOldest()
	}
}

// removeOldest drops the one that was given up first. a.mu is held.
func (a *attempts[K]) removeOldest() {
	oldest := a.made.Front().Value.(givenUp[K])
	a.remove(oldest.of, oldest.version)
}

// remove drops one, if it is there. a.mu is held.
func (a *attempts[K]) remove(of K, version string) {
	e, ok := a.byOf[of][version]
	if !ok {
		return
	}
	a.made.Remove(e)
	delete(a.byOf[of], version)
	if len(a.byOf[of]) == 0 {
		delete(a.byOf, of)
	}
}

// of returns the versions tried for k, oldest first.
func (a *attempts[K]) of(k K, now time.Duration) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(now)
	nth := func(version string) int { return a.byOf[k][version].Value.(givenUp[K]).nth }
	return slices.SortedFunc(maps.Keys(a.byOf[k]), func(v, u string) int { return cmp.Compare(nth(v), nth(u)) })
}

// has reports whether a version was tried for k.
func (a *attempts[K]) has(k K, version string, now time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(now)
	_, ok := a.byOf[k][version]
	return ok
}

// any reports whether some version was tried for k.
func (a *attempts[K]) any(k K, now time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(now)
	return len(a.byOf[k]) > 0
}

// drop forgets a version of k that turned out to have landed, and is held.
func (a *attempts[K]) drop(k K, version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(k, version)
}

// orphan says that nobody believes in these versions of a key: seen as holder,
// one is taken over at once.
func (c *Client) orphan(key Key, versions []string) { c.orphans.add(key, versions, c.now().Mono) }

func (c *Client) isOrphan(key Key, version string) bool {
	return c.orphans.has(key, version, c.now().Mono)
}

// hasOrphans reports whether any attempt for the key is remembered.
func (c *Client) hasOrphans(key Key) bool { return c.orphans.any(key, c.now().Mono) }

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
