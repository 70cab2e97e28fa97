package leasehold

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/places"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// release is one lock that a call releases, by itself or together with others.
type release struct {
	h      *holding
	e      ending
	places *places.Effort // of its requests; nil: they wait for none
	op     *releasing     // the effort to free the key, if it is this call's

	// In a transaction:
	f       *freeing
	started decide.Instant
	attempt attempt
}

// write spells the release for a transaction that starts now.
func (r *release) write() *protocol.Write {
	r.started = r.h.c.now()
	r.f = r.h.freeingBy(r.op, r.started, true)
	var w *protocol.Write
	r.attempt, w = r.f.next(r.e)
	return w
}

// unsettled has the releases that follow expect that the transaction's may have
// been applied. silent: it has had no answer.
func (r *release) unsettled(silent bool) {
	r.f.tried.Add(r.attempt)
	if silent {
		r.f.tried.NoReply()
	}
}

// settle ends the effort: nil, the transaction has freed the key.
func (r *release) settle(err error) {
	r.f.settled(r.started, r.e, err)
	r.op.end(err)
}

func holdsOf(rs []*release) []*holding {
	holds := make([]*holding, len(rs))
	for i, r := range rs {
		holds[i] = r.h
	}
	return holds
}

// release ends the trust in all the locks and frees their keys. It takes at least
// Config.ReleaseGrace if it has to, however soon ctx ends. Errors are in the
// order of rs.
func (c *Client) release(ctx context.Context, rs []*release) []error {
	limit, cancel := atLeast(ctx, c.cfg.ReleaseGrace)
	defer cancel()
	return c.releaseWithin(limit, rs)
}

func (c *Client) releaseWithin(limit context.Context, rs []*release) []error {
	for _, r := range rs {
		r.claim(limit)
	}
	return c.freeClaimed(limit, rs)
}

// claim ends the trust and makes this call's the effort that frees the key,
// unless the lock had ended before.
func (r *release) claim(limit context.Context) bool {
	r.h.lease.Look()
	op := newReleasing(limit)
	op.places = r.places
	if !r.h.endWith(ErrReleased, op) {
		return false
	}
	r.op = op
	return true
}

// freeClaimed frees the keys that were claimed, up to 100 in one transaction.
// Those of locks that had ended before are released by themselves.
func (c *Client) freeClaimed(limit context.Context, rs []*release) []error {
	claimed := slices.DeleteFunc(slices.Clone(rs), func(r *release) bool { return r.op == nil })
	for chunk := range slices.Chunk(claimed, attempts.MaxTransact) {
		c.detach(func() {
			_, leave := takeTurns(limit, holdsOf(chunk))
			defer leave()
			c.free(chunk)
		})
	}
	errs := make([]error, len(rs))
	inParallel(len(rs), func(i int) {
		if r := rs[i]; r.op != nil {
			errs[i] = r.h.outcome(limit, r.op)
		} else {
			errs[i] = r.h.releaseEnded(limit, r.e, r.places)
		}
	})
	return errs
}

// free frees the keys of one effort in one transaction; a single one, or if that
// was refused or had no answer, one by one and in parallel. The commits of the
// locks are over. What a transaction frees is not handed over to the next in the
// local line: its answer has no tokens.
func (c *Client) free(rs []*release) {
	if len(rs) > 1 && c.freeTogether(rs) {
		return
	}
	inParallel(len(rs), func(i int) {
		rs[i].op.end(rs[i].h.freeNow(rs[i].op, rs[i].e, true))
	})
}

// freeTogether sends one transaction of releases, and reports whether it has
// freed the keys. If not, it may have all the same: what is sent next expects
// that.
func (c *Client) freeTogether(rs []*release) bool {
	writes := make([]*protocol.Write, len(rs))
	for i, r := range rs {
		writes[i] = r.write()
	}
	ctx, cancel := context.WithCancel(rs[0].h.ctx)
	defer cancel()
	for _, r := range rs { // whoever repeats the release of one need not wait for this answer
		defer context.AfterFunc(r.op.ctx, cancel)()
	}
	t, _ := c.requests.Transact(ctx, writes, attempts.Limit)
	rs[0].f.sent++
	for _, r := range rs {
		if t.Effect == decide.Applied {
			r.settle(nil)
		} else { // even if it was cancelled: of a request delivered twice, this may be the second answer
			r.unsettled(t.Effect == decide.Unknown)
		}
	}
	return t.Effect == decide.Applied
}

// releaseEnded frees the key of a lock that had ended before this call, if it may
// be held yet: by an effort of its own, or by the one under way.
func (h *holding) releaseEnded(limit context.Context, e ending, places *places.Effort) error {
	cause := h.ended()
	if errors.Is(cause, ErrDetached) {
		return ErrDetached
	}
	lost := (*LostError)(nil)
	if errors.As(cause, &lost) && lost.seenGone() {
		return cause // nothing of ours is left to release
	}
	trusted := lost == nil && errors.Is(cause, ErrReleased)
	for {
		op, own := h.effort(limit, places)
		if own {
			h.c.detach(func() { op.end(h.free(op, e, trusted)) })
		}
		err := h.outcome(limit, op)
		switch {
		case !own && op.failed() && limit.Err() == nil:
			continue // with a request of this call's own
		case lost != nil && op.ended():
			return cause
		}
		return err
	}
}

// giveBack frees what nobody wants any more, within the release grace.
func (c *Client) giveBack(held []*holding) {
	rs := make([]*release, len(held))
	for i, h := range held {
		rs[i] = &release{h: h, e: ending{policy: h.want.policy}}
	}
	_ = c.release(endedContext(), rs) // reported as events
}

// inParallel calls fn for each of 0 to n-1 and waits for all: the first on this
// goroutine, so that one alone needs no other.
func inParallel(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { fn(i) })
	}
	if n > 0 {
		fn(0)
	}
	wg.Wait()
}

// joined is errors.Join, but leaves a single error as it is.
func joined(errs ...error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
