package leasehold

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Commit runs writes in one transaction that lands only while this grant
// stands. It takes at most 99 writes, 98 under Config.SharedLease. Without writes it
// only checks whether the grant stands.
//
// Nil means that the writes have landed, once. ErrLost means that the grant had
// ended; the lock's context ends as well. *CommitError means that one of the writes
// failed, for example by its own condition; the lock is still held. In these two
// cases nothing was written, nor will be. ErrUnknownOutcome means that no reply came
// in time, or none that settles it: the writes may have landed, or may yet while the
// grant stands. Read what they were to change. With any other error the request was
// refused or never sent, and has written nothing.
//
// Conflicts and throttling are retried under one idempotency token while the
// lock is trusted, lost replies until ctx ends, for at most five minutes. When
// ctx ends Commit returns at once. Commits of one lock take turns, and requests
// of all locks under a shared lease. A write to the lock's own record is refused
// before anything is sent. The caller's IAM policy must allow
// dynamodb:ConditionCheckItem on the lock table.
func (l *Lock) Commit(ctx context.Context, writes []types.TransactWriteItem) error {
	return l.group().Commit(ctx, writes)
}

// Commit is Lock.Commit with every lock's guard: at most 100 - len(Guards())
// writes. ErrLost is of the first lock whose guard failed; the others are still
// held, unless it was their shared lease.
func (g *Group) Commit(ctx context.Context, writes []types.TransactWriteItem) error {
	holds := g.inOrder()
	if err := g.c.checkWrites(holds, writes); err != nil {
		return err
	}
	if err := g.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return notSent(holds[0], context.Cause(ctx))
	}
	t := newTransaction(ctx, holds, writes, nil)
	var err error
	if _, unknown := g.c.outlive(ctx, t, func() { err = g.commit(t) }); unknown != nil {
		return g.c.unknownOutcome("commit", holds[0].key, unknown)
	}
	return err
}

// commit runs t in the turn of every lock.
func (g *Group) commit(t *transaction) error {
	defer t.stop()
	waiting, cancel := g.Bind(t.ctx)
	late, leave := takeTurns(waiting, t.holds)
	cancel()
	if late != nil {
		leave()
		if err := g.Err(); err != nil {
			return err
		}
		return notSent(late, context.Cause(t.ctx))
	}
	result, err := t.run()
	leave() // before anybody is told, who may commit or release the locks
	t.report(result, err)
	return err
}

// CommitAndRelease is Commit that frees the key in the same transaction. The
// lock is released in any case: if the writes did not land, by a plain release
// that follows. The context ends before anything is sent. A ctx that has ended
// shortens the release to Config.ReleaseGrace; it does not skip it.
//
// If other handles share the grant (Reentrant), it releases only this handle. That
// stores no data and no attributes: if opts have others than the record, nothing is
// committed.
//
// Nil means that the writes have landed, and what opts store with them. It is returned
// even if the last of several handles could not free the key afterwards: that is
// logged and reported as an event.
func (l *Lock) CommitAndRelease(ctx context.Context, writes []types.TransactWriteItem, opts ...ReleaseOption) error {
	return l.group().CommitAndRelease(ctx, writes, opts...)
}

// CommitAndRelease is Lock.CommitAndRelease for all the locks: they are freed
// with the writes or, if those have not landed, after them.
func (g *Group) CommitAndRelease(ctx context.Context, writes []types.TransactWriteItem, opts ...ReleaseOption) error {
	rs, err := g.newReleases(opts)
	if err == nil {
		err = g.c.checkWrites(g.inOrder(), writes)
	}
	switch {
	case err != nil:
	case g.Err() != nil:
		err = g.Err()
	case ctx.Err() != nil:
		err = notSent(g.inOrder()[0], context.Cause(ctx))
	default:
		return g.commitAndRelease(ctx, rs, writes)
	}
	return withReleases(err, g.release(ctx, rs))
}

// withReleases joins the error of a commit that has not landed, or may not have, and
// those of the releases after it. They may report the same loss: it is said once.
func withReleases(err error, released []error) error {
	if errors.Is(err, ErrLost) {
		released = slices.DeleteFunc(released, func(r error) bool { return errors.Is(r, ErrLost) })
	}
	return joined(append([]error{err}, released...)...)
}

// commitAndRelease ends the handles, and the trust in all the locks that no other
// handle shares, and runs writes together with the releases of those.
func (g *Group) commitAndRelease(ctx context.Context, rs []*release, writes []types.TransactWriteItem) error {
	c := g.c
	ctx, stop := besides(ctx, holdsOf(rs)...)
	defer stop()
	limit, cancel := atLeast(ctx, c.cfg.ReleaseGrace)
	defer cancel()
	var ended error // which keeps the commit from being sent, while others were claimed
	for i, r := range rs {
		ended = cmp.Or(ended, g.locks[i].claim(limit, r))
	}
	slices.SortFunc(rs, func(a, b *release) int { return compareHoldings(a.h, b.h) })
	if ended != nil {
		return withReleases(ended, c.freeClaimed(limit, rs))
	}
	var err error
	var now latest
	_, unknown := c.outlive(limit, &now, func() {
		late, leave := takeTurns(limit, holdsOf(rs))
		if late != nil { // another commit has had all the time there was
			err = notSent(late, context.Cause(limit))
		} else {
			err = c.commitWithReleases(ctx, rs, writes, &now)
		}
		c.detach(func() { // nobody waits for that to know the outcome
			defer leave()
			free(slices.DeleteFunc(slices.Clone(rs), func(r *release) bool { return r.handle != nil || r.ended() }))
		})
	})
	for _, r := range rs { // whoever releases another handle after this call is not held up by it
		r.drop(limit)
	}
	if unknown != nil {
		return c.unknownOutcome("commit", rs[0].h.key, unknown)
	}
	released := make([]error, len(rs))
	for i, r := range rs {
		released[i] = r.wait(limit)
	}
	if err == nil { // whatever became of a release that was no part of it
		return nil
	}
	return withReleases(err, released)
}

// commitWithReleases sends one transaction of writes and releases, with guards in the
// place of releases where other handles share the grant. It settles the releases of all
// if it was committed, and those of locks that turn out to be lost. Releases that follow
// expect what it may have written. now holds the transaction.
func (c *Client) commitWithReleases(ctx context.Context, rs []*release, writes []types.TransactWriteItem, now *latest) error {
	fs := make([]*releaser, len(rs)) // nil: others share the grant
	sent := make([]attempt, len(rs))
	ends := make([]types.TransactWriteItem, len(rs))
	for i, r := range rs {
		if r.handle != nil {
			ends[i] = r.h.guard()
			continue
		}
		var w *protocol.Write
		fs[i] = r.releaser()
		sent[i], w = fs[i].next()
		ends[i] = w.TransactItem(c.cfg.Table)
	}
	t := newTransaction(ctx, holdsOf(rs), writes, ends)
	t.ended = func(h *holding) error {
		if fs[slices.Index(t.holds, h)] == nil {
			return h.ended()
		}
		return h.outlived()
	}
	now.begin(t)
	result, err := t.run()
	t.report(result, err)
	for i, f := range fs {
		switch {
		case f == nil:
		case result.Step == decide.Committed:
			f.settle(nil)
		case t.losses[i] != nil:
			f.settle(t.losses[i])
		case result.Step == decide.Doubtful:
			f.tried.Add(sent[i])
			f.tried.NoReply()
		}
	}
	return err
}

// notSent is the error of a commit that did not send anything.
func notSent(h *holding, cause error) error {
	return h.c.errorf("commit", h.key, "nothing was sent: %w", cause)
}
