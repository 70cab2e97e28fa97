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

// Holds is the set of locks that one client holds, together with the state that they share.
type Holds struct {
	*core.Env
	keys   *acquire.Keys
	leases *lease.Leases
	timing lease.Timing // timing of sessions, and of locks whose callers have chosen no lease

	shared    bool           // each lock that was not resumed is held under a session (Config.SharedLease)
	beginning ctxmutex.Mutex // locked while a call begins a session
	session   atomic.Pointer[session]

	failing  failing
	resumes  indoubt.Attempts[string] // attempts of unknown outcome to resume a grant, by the grant's id
	resuming sync.Map                 // a channel for each Resume in progress, by the grant's id; closed when that Resume has ended
	result   error                    // error of the first Close, returned by later calls of Close

	mu      sync.Mutex // guards the fields below; never held across I/O
	held    map[*Lock]struct{}
	grants  int            // number of grants that this client has held so far
	unfreed map[*Lock]bool // locks whose key may still be held after their release has begun: true if that release has failed, and a timer repeats it
}

// New returns a Holds without locks. The parameter "shared" is true if locks will be held under a
// session.
func New(env *core.Env, keys *acquire.Keys, leases *lease.Leases, timing lease.Timing, shared bool) *Holds {
	return &Holds{
		Env: env, keys: keys, leases: leases, timing: timing, shared: shared, beginning: ctxmutex.New(),
		failing: failing{locks: map[*row]error{}}, held: map[*Lock]struct{}{}, unfreed: map[*Lock]bool{},
	}
}

// Shares reports whether locks are held under a session. Resumed locks never are.
func (c *Holds) Shares() bool { return c.shared }

// Locks returns the locks that this client holds, in order of acquisition.
func (c *Holds) Locks() []*Lock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Keys(c.held), func(a, b *Lock) int { return cmp.Compare(a.nth, b.nth) })
}

// Locks returns the locks that this client holds under the session.
func (s *session) Locks() []*Lock {
	return slices.DeleteFunc(s.c.Locks(), func(h *Lock) bool { return h.session != s })
}

// Holds reports whether this client holds the key under the grant with the given id.
func (c *Holds) Holds(key protocol.Key, grant string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.held {
		if h.key == key && h.grant == grant { // c.held may contain several grants of one key: a lost grant stays until this client notices the loss
			return true
		}
	}
	return false
}

func (c *Holds) keep(h *Lock) {
	c.mu.Lock()
	if !h.lease.IsOver() {
		c.grants++
		h.nth = c.grants
		c.held[h] = struct{}{}
	}
	locks := len(c.held)
	c.mu.Unlock()
	if h.session == nil {
		c.Kept(locks)
	}
}

// drop removes a lock that has ended from the held locks. The parameter "releasing" is true if a
// release has ended it.
func (c *Holds) drop(h *Lock, releasing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, h)
	if releasing {
		c.unfreed[h] = false
	}
}

// repeats records in c.unfreed whether the release of h has failed and must be repeated, by a timer
// or by Close.
func (c *Holds) repeats(h *Lock, repeats bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unfreed, h)
	if repeats {
		c.unfreed[h] = true
	}
}

// failedToFree returns the locks in c.unfreed whose release a timer repeats. If "begun" is true, it
// also returns those whose release is in progress.
func (c *Holds) failedToFree(begun bool) []*Lock {
	c.mu.Lock()
	defer c.mu.Unlock()
	var locks []*Lock
	for h, repeated := range c.unfreed {
		if repeated || begun {
			locks = append(locks, h)
		}
	}
	return locks
}
