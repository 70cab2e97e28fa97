package leasehold

import (
	"context"
	"slices"
	"sync"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// parting is one of several holdings that are released together.
type parting struct {
	h  *holding
	e  ending
	op *releasing // nil: released on its own
	f  *freeing
}

func compareParts(a, b *parting) int { return compareKeys(a.h.key, b.h.key) }

// releaseAll ends the trust in all and frees their keys, in one transaction per
// 100 where that goes through. Errors are in the order of ps.
func (c *Client) releaseAll(ctx context.Context, ps []*parting) []error {
	limit, cancel := atLeast(ctx, c.cfg.ReleaseGrace)
	defer cancel()
	started := c.now()
	var together []*parting
	for _, p := range ps {
		if p.claim(limit, started) {
			together = append(together, p)
		}
	}
	for chunk := range slices.Chunk(together, maxTransact) {
		c.detach(func() { c.freeAll(limit, started, chunk) })
	}
	errs := make([]error, len(ps))
	var wg sync.WaitGroup
	for i, p := range ps {
		wg.Go(func() {
			if p.op == nil { // lost, or released or being released by another call
				errs[i] = p.h.releaseWithin(limit, p.e, nil)
			} else {
				errs[i] = p.h.outcome(limit, p.op)
			}
		})
	}
	wg.Wait()
	return errs
}

// claim ends the trust and makes this effort the one that frees the key, unless
// it had ended before.
func (p *parting) claim(limit context.Context, started decide.Instant) bool {
	h := p.h
	h.look()
	op := newReleasing(limit)
	if !h.endWith(ErrReleased, op) {
		return false
	}
	p.op, p.f = op, h.freeingBy(op, started, true)
	return true
}

// freeAll releases what was trusted until now: in one transaction, or one by
// one and in parallel where that was refused or had no answer. Keys are not
// handed over to the local line: a transaction returns no tokens. Commits under
// way are waited for, in the order in which they take their turns.
func (c *Client) freeAll(limit context.Context, started decide.Instant, ps []*parting) {
	for _, p := range slices.SortedFunc(slices.Values(ps), compareParts) {
		leave, _ := p.h.afterCommits(limit)
		defer leave()
	}
	freed := len(ps) > 1 && c.freeTogether(ps)
	var wg sync.WaitGroup
	for _, p := range ps {
		wg.Go(func() {
			var err error
			if !freed {
				err = p.f.release(limit, p.e)
			}
			p.f.settled(started, p.e, err)
			p.op.end(err)
		})
	}
	wg.Wait()
}

// freeTogether sends one transaction of releases, and reports whether it has
// freed the keys. If it did not, those that follow expect it none the less.
func (c *Client) freeTogether(ps []*parting) bool {
	attempts := make([]attempt, len(ps))
	writes := make([]*protocol.Write, len(ps))
	for i, p := range ps {
		attempts[i], writes[i] = p.f.next(p.e)
	}
	ctx, cancel := context.WithCancel(ps[0].h.ctx)
	defer cancel()
	for _, p := range ps { // one effort for all: whoever repeats it for one need not wait for its answer
		defer context.AfterFunc(p.op.ctx, cancel)()
	}
	t, _ := c.transactUntil(ctx, writes, attemptLimit)
	ps[0].f.sent++
	if t.Effect == decide.Applied {
		return true
	}
	for i, p := range ps {
		// One that was cancelled may have landed as well: delivered twice, the
		// second of its replies came.
		p.f.note(attempts[i])
		p.f.unknown = p.f.unknown || t.Effect == decide.Unknown
	}
	return false
}

// giveBack frees what nobody wants any more, within the release grace.
func (c *Client) giveBack(held []*holding) {
	ps := make([]*parting, len(held))
	for i, h := range held {
		ps[i] = &parting{h: h, e: ending{policy: h.want.policy}}
	}
	_ = c.releaseAll(endedContext(), ps) // reported as events
}
