package hold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/ctxmutex"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Close closes the client, as documented at leasehold.Client.Close.
func (c *Holds) Close(ctx context.Context) error {
	if !c.BeginClose() {
		select {
		case <-c.Closed.Done():
			return c.result
		case <-ctx.Done():
			return fmt.Errorf("leasehold: close: the first Close is still under way: %w", attempts.Cause(ctx))
		}
	}
	defer c.EndClose()
	limit, cancel := c.AtLeastGrace(ctx, ctx)
	defer cancel()
	cl := &closer{c: c, limit: limit, slots: make(ctxmutex.Mutex, c.Renewals)}
	held := c.byTrust() // called before failedBesides: if the release of a lock fails between the two calls, the lock is in held
	locks := slices.Concat(cl.failedBesides(held, false), held)
	cl.freeAll(locks)
	c.WaitIdle(limit)
	late := cl.failedBesides(locks, true) // releases by other calls that have failed since Close began or, if its time is over, are still in progress
	for _, h := range late {
		cl.freeOne(h)
	}
	cl.wg.Wait()
	locks = append(locks, late...)
	if len(cl.errs) > 0 {
		c.result = &closeError{table: c.Table, held: len(locks), errs: cl.errs}
	}
	return c.result
}

// closer frees the locks of a client that closes.
type closer struct {
	c     *Holds
	limit context.Context
	slots ctxmutex.Mutex // semaphore that limits the number of requests in flight to the client's Renewals
	wg    sync.WaitGroup
	busy  atomic.Bool // a function passed to Do did not return in time, and still runs
	ended bool        // one write has ended the session, which has freed its locks

	mu   sync.Mutex
	errs []error // guarded by mu, until wg is done
}

// report adds the error of a lock or of the session, unless it is nil.
func (cl *closer) report(err error) {
	if err != nil {
		cl.mu.Lock()
		defer cl.mu.Unlock()
		cl.errs = append(cl.errs, err)
	}
}

// failedBesides returns the locks of failedToFree that are not among the given ones, and that the end
// of the session has not freed.
func (cl *closer) failedBesides(locks []*Lock, begun bool) []*Lock {
	given := map[*Lock]bool{}
	for _, h := range locks {
		given[h] = true
	}
	return slices.DeleteFunc(cl.c.failedToFree(begun), func(h *Lock) bool {
		return given[h] || cl.ended && h.session != nil && !h.want.Delete
	})
}

// byTrust returns the held locks, the lock with the least remaining trust first. It omits
// locks that their callers have not received yet.
func (c *Holds) byTrust() []*Lock {
	held, now := c.Locks(), c.Now()
	c.mu.Lock()
	held = slices.DeleteFunc(held, func(h *Lock) bool { return h.unclaimed })
	c.mu.Unlock()
	left := func(h *Lock) time.Duration { return now.Remaining(h.lease.TrustedUntil()) }
	slices.SortStableFunc(held, func(a, b *Lock) int { return cmp.Compare(left(a), left(b)) })
	return held
}

// freeAll frees each lock as soon as no function passed to Do runs under it. If the functions under
// a session's locks return within half of ReleaseGrace, one write frees these locks together.
// Otherwise each lock is freed alone: a hanging function keeps only its own lock.
func (cl *closer) freeAll(locks []*Lock) {
	patience, cancel := context.WithTimeout(cl.limit, cl.c.ReleaseGrace/2)
	defer cancel()
	for _, h := range locks {
		// Cancel the lock's contexts. This asks a function that the method Do runs under the lock
		// to return. Until the function has returned, the lease is renewed.
		h.cancelHandles(core.ErrClosed)
	}
	var ofSession []*Lock
	for _, h := range locks {
		if h.session != nil && !h.want.Delete {
			ofSession = append(ofSession, h)
		} else {
			cl.freeOne(h)
		}
	}
	if slices.ContainsFunc(ofSession, func(h *Lock) bool { return h.isBusy() && !h.working.Wait(patience) }) {
		for _, h := range ofSession {
			cl.freeOne(h)
		}
	}
	cl.wg.Wait()
	busy := cl.busy.Load()
	err := cl.c.closeSession(cl.limit, busy)
	cl.ended = err == nil && !busy
	cl.report(err)
}

// freeOne frees a lock on a new goroutine. Before it starts this goroutine, it waits for a slot, so
// that locks get slots in order. But if a function passed to Do runs under the lock, the goroutine
// waits for the function, and then for a slot.
func (cl *closer) freeOne(h *Lock) {
	if !h.isBusy() {
		ok := cl.slots.Lock(cl.limit)
		cl.wg.Go(func() { cl.report(cl.free(h, ok)) })
		return
	}
	cl.wg.Go(func() {
		if !h.working.Wait(cl.limit) {
			h.end(core.ErrClosed)
			cl.busy.Store(true)
			cl.report(fmt.Errorf("leasehold: close: %v: a function in Do has not returned: its lock is left to its lease: %w",
				h.key, attempts.Cause(cl.limit)))
			return
		}
		cl.report(cl.free(h, cl.slots.Lock(cl.limit)))
	})
}

// isBusy reports whether a function passed to Do runs under the lock. A function that runs on after
// its lock was released does not count: Close need not wait for it before it repeats the release.
func (h *Lock) isBusy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.givenUp && !h.working.AreOver()
}

// free frees a lock. The parameter "ok" is true if the first request of the release has a slot. It
// is false if Close ran out of time before a slot was available. In that case free ends the lock,
// and sends nothing. If another call has begun a release of the lock, the error is that of this
// release.
func (cl *closer) free(h *Lock, ok bool) error {
	if !ok {
		if h.end(core.ErrClosed) || h.begun() == nil {
			return cl.c.Errors.Failed("release", h.key, fmt.Errorf("nothing was sent, no time was left: %w", attempts.Cause(cl.limit)))
		}
		return h.begun().wait(cl.limit)
	}
	r := h.newRelease()
	r.slots = cl.slots
	r.admitted.Store(true)
	defer func() {
		if r.admitted.Swap(false) { // the release has sent no request
			cl.slots.Unlock()
		}
	}()
	r.begin(cl.limit, core.ErrClosed)
	return r.finish(cl.limit)
}

// closeError is the error of Close. Its text is one line, and it unwraps to all errors of
// the releases.
type closeError struct {
	table string
	held  int
	errs  []error
}

func (e *closeError) Error() string {
	// Show the error of a release whose outcome is known, if there is one: its text names the
	// cause. The other releases mostly failed because Close ran out of time before DynamoDB
	// answered.
	answered := slices.IndexFunc(e.errs, func(err error) bool { return !errors.Is(err, attempts.ErrUnknownOutcome) })
	one := visible.Message(e.errs[max(answered, 0)].Error())
	if len(e.errs) == 1 {
		return one
	}
	return fmt.Sprintf("leasehold: close: %d of %d locks in table %s are left to their leases, or lost; one of them: %s",
		len(e.errs), e.held, e.table, strings.TrimPrefix(one, "leasehold: "))
}

func (e *closeError) Unwrap() []error { return e.errs }
