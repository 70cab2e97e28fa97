package hold

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/ctxmutex"
	"github.com/leasehold-go/leasehold/internal/indoubt"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Holds has the locks of one client.
type Holds struct {
	*core.Env
	keys   *acquire.Keys
	leases *lease.Leases
	timing lease.Timing // of a lock whose caller has not asked for another, and of sessions

	shared    bool           // locks are held under sessions, one at a time
	beginning ctxmutex.Mutex // held by the call that begins a session
	session   atomic.Pointer[session]

	failing  failing
	resumes  indoubt.Attempts[string] // attempts to resume a grant, by its id
	resuming resuming
	result   error // Close returns it

	mu      sync.Mutex // guards what follows; never held across I/O
	held    map[*Lock]int
	grants  int                // ever, to put held in order
	unfreed map[*Lock]struct{} // locks whose release has failed and is repeated by a timer
}

// New returns a client that holds nothing; shared: its locks are to be under sessions.
func New(env *core.Env, keys *acquire.Keys, leases *lease.Leases, timing lease.Timing, shared bool) *Holds {
	return &Holds{
		Env: env, keys: keys, leases: leases, timing: timing, shared: shared, beginning: ctxmutex.New(),
		held: map[*Lock]int{}, unfreed: map[*Lock]struct{}{},
	}
}

// Shares reports whether locks are held under sessions.
func (c *Holds) Shares() bool { return c.shared }

// Locks returns what is held, in order of acquisition.
func (c *Holds) Locks() []*Lock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Keys(c.held), func(a, b *Lock) int { return cmp.Compare(c.held[a], c.held[b]) })
}

// Holds reports whether a lock of this client is that grant.
func (c *Holds) Holds(key protocol.Key, grant string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.held {
		if h.key == key && h.grant == grant { // several grants of one key may be known
			return true
		}
	}
	return false
}

func (c *Holds) keep(h *Lock) {
	c.mu.Lock()
	if !h.lease.IsOver() {
		c.grants++
		c.held[h] = c.grants
	}
	locks := len(c.held)
	c.mu.Unlock()
	if h.session == nil {
		c.Listener.Report(h.ctx, core.Event{Kind: core.Kept, Key: h.key, Locks: locks})
	}
}

func (c *Holds) drop(h *Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, h)
}

// repeats notes whether the release of a lock has failed, and is repeated. Close frees such
// locks too.
func (c *Holds) repeats(h *Lock, repeats bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if repeats {
		c.unfreed[h] = struct{}{}
	} else {
		delete(c.unfreed, h)
	}
}

// failedToFree returns the locks whose release has failed, and is repeated.
func (c *Holds) failedToFree() []*Lock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.unfreed))
}
