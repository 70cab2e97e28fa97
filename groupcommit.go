package leasehold

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// Commit is Lock.Commit with every lock's guard: at most 100 - len(Guards())
// writes. ErrLost is of the first lock whose guard failed; the others are held
// on to, unless it was their shared lease.
func (g *Group) Commit(ctx context.Context, writes []types.TransactWriteItem) error {
	holds := g.inOrder()
	if err := g.c.checkWrites(holds, writes); err != nil {
		return err
	}
	if err := g.Err(); err != nil {
		return err
	}
	return g.c.commit(ctx, holds, writes)
}

// CommitAndRelease is Lock.CommitAndRelease for all the locks: they are freed
// with the writes or, where those have not landed, after them.
func (g *Group) CommitAndRelease(ctx context.Context, writes []types.TransactWriteItem, opts ...ReleaseOption) error {
	ps, err := g.partings(opts)
	if err == nil {
		err = g.c.checkWrites(g.inOrder(), writes)
	}
	switch {
	case err != nil:
	case g.Err() != nil:
		err = g.Err()
	case ctx.Err() != nil:
		err = notSent(g.inOrder()[0], context.Cause(ctx))
	case slices.ContainsFunc(g.locks, (*Lock).isShared):
		err = g.Commit(ctx, writes)
	default:
		return g.c.commitAndReleaseAll(ctx, ps, writes)
	}
	return withRelease(err, g.Release(ctx, opts...))
}

// inOrder returns what the locks hold in the order in which several keys are
// taken: so do commits of several locks take their turns.
func (g *Group) inOrder() []*holding {
	holds := make([]*holding, len(g.locks))
	for i, l := range g.locks {
		holds[i] = l.h
	}
	slices.SortFunc(holds, func(a, b *holding) int { return compareKeys(a.key, b.key) })
	return holds
}

// commitAndReleaseAll ends the trust in all and runs writes together with the
// releases.
func (c *Client) commitAndReleaseAll(ctx context.Context, ps []*parting, writes []types.TransactWriteItem) error {
	slices.SortFunc(ps, compareParts)
	holds := make([]*holding, len(ps))
	for i, p := range ps {
		holds[i] = p.h
	}
	ctx, stop := besides(ctx, holds...)
	defer stop()
	limit, cancel := atLeast(ctx, c.cfg.ReleaseGrace)
	defer cancel()
	started := c.now()
	var lost error
	var ended []*parting
	for _, p := range ps {
		if p.claim(limit, started) {
			ended = append(ended, p)
		} else if lost == nil {
			lost = p.h.ended()
		}
	}
	done := make(chan error, 1)
	c.detach(func() {
		if lost != nil { // while the others were given up
			c.freeAll(limit, started, ended)
			done <- lost
			return
		}
		done <- c.commitAndFreeAll(ctx, limit, ended, writes)
	})
	select {
	case err := <-done:
		return err
	case <-limit.Done():
	}
	select {
	case err := <-done:
		return err
	default:
		return c.unknownOutcome("commit", ps[0].h.key, context.Cause(limit))
	}
}

// commitAndFreeAll runs writes together with the releases, and the releases
// alone if they did not land.
func (c *Client) commitAndFreeAll(ctx, limit context.Context, ps []*parting, writes []types.TransactWriteItem) error {
	started := c.now()
	err := c.commitTogether(ctx, limit, ps, writes)
	if err == nil {
		for _, p := range ps {
			p.f.settled(started, p.e, nil)
			p.op.end(nil)
		}
		return nil
	}
	c.freeAll(limit, started, ps)
	released := make([]error, len(ps))
	for i, p := range ps {
		released[i] = p.op.err
	}
	return withRelease(err, errors.Join(released...))
}

// commitTogether takes the commits' turn of each lock and sends one transaction
// of writes and releases; nil: it has landed. Releases that follow expect what
// it may have written.
func (c *Client) commitTogether(ctx, limit context.Context, ps []*parting, writes []types.TransactWriteItem) error {
	holds := make([]*holding, len(ps))
	attempts := make([]attempt, len(ps))
	ends := make([]types.TransactWriteItem, len(ps))
	for i, p := range ps {
		leave, ok := p.h.afterCommits(limit)
		defer leave()
		if !ok { // another commit has had all the time there was
			return notSent(p.h, context.Cause(limit))
		}
		a, w := p.f.next(p.e)
		holds[i], attempts[i], ends[i] = p.h, a, w.TransactItem(c.cfg.Table)
	}
	t := newTransaction(ctx, holds, writes, ends)
	t.gaveUp = true
	step, err := t.run()
	t.report(err)
	if step == decide.Doubtful {
		for i, p := range ps {
			p.f.unknown = true
			p.f.note(attempts[i])
		}
	}
	return err
}
