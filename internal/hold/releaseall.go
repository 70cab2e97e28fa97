package hold

import (
	"context"
	"slices"
	"sync"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/seek"
)

func holdsOf(rs []*release) []*Lock {
	holds := make([]*Lock, len(rs))
	for i, r := range rs {
		holds[i] = r.h
	}
	return holds
}

// release ends the trust in all the locks and frees their keys. It takes at least
// ReleaseGrace if it has to, however soon ctx ends. Errors are in the
// order of rs.
func (c *Client) release(ctx context.Context, rs []*release) []error {
	limit, cancel := c.atLeastGrace(ctx)
	defer cancel()
	return c.releaseWithin(limit, rs)
}

func (c *Client) releaseWithin(limit context.Context, rs []*release) []error {
	for _, r := range rs {
		r.claim(limit)
	}
	return c.freeClaimed(limit, rs)
}

// freeClaimed frees the keys that were claimed, up to 100 in one transaction.
// Those of locks that had ended before are released by themselves, and handles that
// share their grants are dropped.
func (c *Client) freeClaimed(limit context.Context, rs []*release) []error {
	claimed := make([]*release, 0, len(rs))
	for _, r := range rs {
		if r.isBegun() && r.handle == nil {
			claimed = append(claimed, r)
		}
	}
	for chunk := range slices.Chunk(claimed, attempts.MaxTransact) {
		c.Detach(func() {
			_, leave := takeTurns(limit, holdsOf(chunk))
			defer leave()
			free(chunk)
		})
	}
	errs := make([]error, len(rs))
	inParallel(len(rs), func(i int) {
		r := rs[i]
		if r.drop(limit); r.isBegun() {
			errs[i] = r.wait(limit)
		} else {
			errs[i] = r.repeat(limit)
		}
	})
	return errs
}

// free frees the keys of several locks in one transaction; a single one, or what
// that has not settled, one by one and in parallel. It is their turn. What a
// transaction frees is not handed over to the next in the local line: its answer
// has no tokens.
func free(rs []*release) {
	if len(rs) > 1 {
		rs = freeTogether(rs)
	}
	inParallel(len(rs), func(i int) { rs[i].free() })
}

// freeTogether sends one transaction of releases, and returns those that it has not
// settled: all, but for locks that its answer shows to be lost. If it had no answer it
// may have been applied: what is sent next expects that.
func freeTogether(rs []*release) (left []*release) {
	c := rs[0].h.c
	fs := make([]*releaser, len(rs))
	parts := make([]attempts.Part[attempt], len(rs))
	for i, r := range rs {
		fs[i] = r.releaser()
		a, w := fs[i].next()
		parts[i] = attempts.Part[attempt]{Sequence: &fs[i].tried, Attempt: a, Write: w}
	}
	ctx, cancel := context.WithCancel(rs[0].h.ctx)
	defer cancel()
	for _, r := range rs { // whoever repeats the release of one need not wait for this answer
		defer context.AfterFunc(r.ctx, cancel)()
	}
	t, _ := attempts.Together(ctx, c.Requests, attempts.Limit, parts)
	fs[0].sent++
	applied := t.Effect == decide.Applied
	if len(t.Reasons) == len(fs) { // of a transaction delivered twice, this may be the second answer
		for i, reason := range t.Reasons {
			applied = applied || fs[i].isReleasedBy(parts[i].Attempt, reason.Old)
		}
	}
	for i, f := range fs {
		switch {
		case applied:
			f.settle(nil)
		case len(t.Reasons) == len(fs) && t.Reasons[i].Old != nil && f.tried.Answered() && !f.isFreed(t.Reasons[i].Old, nil, rs[i].terms.Delete):
			f.settle(f.lost(t.Reasons[i].Old))
		default:
			left = append(left, rs[i])
		}
	}
	return left
}

// GiveBack frees what nobody wants any more, within the release grace.
func (c *Client) GiveBack(held []seek.Holding) {
	rs := make([]*release, len(held))
	for i, h := range held {
		rs[i] = h.(*Lock).newRelease()
	}
	_ = c.release(endedContext(), rs) // reported as events
}

// inParallel calls fn for each of 0 to n-1 and waits for all. One alone needs no other
// goroutine.
func inParallel(n int, fn func(i int)) {
	if n == 1 {
		fn(0)
		return
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}
