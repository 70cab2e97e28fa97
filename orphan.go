package leasehold

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// rememberFor is how long an attempt without an answer is remembered after it
// was given up: no network keeps a request for as long.
const rememberFor = 15 * time.Minute

// orphans are the versions of attempts that were given up before their effect
// was known. Nobody believes in them: seen as holder, one is taken over at
// once. They are safe for concurrent use.
type orphans struct {
	mu        sync.Mutex
	byVersion map[string]orphaned
	order     []string // of giving up
}

type orphaned struct {
	key Key
	at  time.Duration // monotonic
}

func (o *orphans) add(key Key, versions []string, now time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byVersion == nil {
		o.byVersion = map[string]orphaned{}
	}
	for len(o.order) > 0 && now-o.byVersion[o.order[0]].at > rememberFor {
		delete(o.byVersion, o.order[0])
		o.order = o.order[1:]
	}
	for _, v := range versions {
		if _, ok := o.byVersion[v]; !ok {
			o.byVersion[v] = orphaned{key, now}
			o.order = append(o.order, v)
		}
	}
}

func (o *orphans) has(key Key, version string, now time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	v, ok := o.byVersion[version]
	return ok && v.key == key && now-v.at <= rememberFor
}

// of returns the versions of one key.
func (o *orphans) of(key Key, now time.Duration) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, v := range o.order {
		if e := o.byVersion[v]; e.key == key && now-e.at <= rememberFor {
			out = append(out, v)
		}
	}
	return out[max(0, len(out)-manyTried):]
}

func (c *Client) orphan(key Key, versions []string) { c.orphans.add(key, versions, c.now().Mono) }

func (c *Client) isOrphan(key Key, version string) bool {
	return c.orphans.has(key, version, c.now().Mono)
}

// releaseOrphans frees the key if one of the versions holds it. It is tried
// once: one that lands later blocks this client not at all, others for one
// lease.
func (c *Client) releaseOrphans(ctx context.Context, want *request, versions []string) {
	if len(versions) == 0 {
		return
	}
	hold := protocol.Hold{Key: protocol.Key(want.key), Owner: c.owner, Grants: versions, Versions: versions}
	w := c.proto.Delete(hold)
	if want.policy == keepRecord {
		w = c.proto.Release(hold, protocol.NewVersion(), c.expires(ending{changes: want.changes}, Record{}), protocol.Changes{})
	}
	c.write(ctx, w, attemptLimit)
}
