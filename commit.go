package leasehold

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

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
	done := make(chan struct{})
	var err error
	g.c.detach(func() {
		defer close(done)
		err = g.commit(t)
	})
	select {
	case <-done:
		return err
	case <-ctx.Done():
	}
	if t.Leave(done) {
		return g.c.unknownOutcome("commit", holds[0].key, context.Cause(ctx))
	}
	<-done
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
	case slices.ContainsFunc(g.locks, (*Lock).isShared):
		if err = g.checkStored(rs); err == nil {
			err = g.Commit(ctx, writes)
		}
	default:
		return g.c.commitAndRelease(ctx, rs, writes)
	}
	return withReleases(err, g.release(ctx, rs))
}

// withReleases joins the error of a commit and those of the releases after it. They
// may report the same loss: it is said once.
func withReleases(err error, released []error) error {
	if errors.Is(err, ErrLost) {
		released = slices.DeleteFunc(released, func(r error) bool { return errors.Is(r, ErrLost) })
	}
	return joined(append([]error{err}, released...)...)
}

// commitAndRelease ends the trust in all the locks and runs writes together with
// their releases.
func (c *Client) commitAndRelease(ctx context.Context, rs []*release, writes []types.TransactWriteItem) error {
	slices.SortFunc(rs, func(a, b *release) int { return compareHoldings(a.h, b.h) })
	ctx, stop := besides(ctx, holdsOf(rs)...)
	defer stop()
	limit, cancel := atLeast(ctx, c.cfg.ReleaseGrace)
	defer cancel()
	var lost error // while the others were claimed
	for _, r := range rs {
		if !r.claim(limit) && lost == nil {
			lost = r.h.ended()
		}
	}
	if lost != nil {
		return withReleases(lost, c.freeClaimed(limit, rs))
	}
	committed := make(chan struct{})
	var err error
	var now atomic.Pointer[transaction]
	c.detach(func() {
		late, leave := takeTurns(limit, holdsOf(rs))
		defer leave()
		if late != nil { // another commit has had all the time there was
			err = notSent(late, context.Cause(limit))
		} else {
			err = c.commitWithReleases(ctx, rs, writes, &now)
		}
		close(committed)
		free(slices.DeleteFunc(slices.Clone(rs), (*release).ended))
	})
	if !endsWithin(limit, committed) {
		if t := now.Load(); t != nil && t.Leave(committed) {
			return c.unknownOutcome("commit", rs[0].h.key, context.Cause(limit))
		}
		<-committed // which is about to be closed: no other request of the commit is begun
	}
	released := make([]error, len(rs))
	for i, r := range rs {
		released[i] = r.wait(limit)
	}
	return withReleases(err, released)
}

// commitWithReleases sends one transaction of writes and releases. It settles
// the releases of all if it was committed, and those of locks that turn out to be
// lost. Releases that follow expect what it may have written. now holds the transaction.
func (c *Client) commitWithReleases(ctx context.Context, rs []*release, writes []types.TransactWriteItem, now *atomic.Pointer[transaction]) error {
	fs := make([]*releaser, len(rs))
	sent := make([]attempt, len(rs))
	ends := make([]types.TransactWriteItem, len(rs))
	for i, r := range rs {
		var w *protocol.Write
		fs[i] = r.releaser()
		sent[i], w = fs[i].next()
		ends[i] = w.TransactItem(c.cfg.Table)
	}
	t := newTransaction(ctx, holdsOf(rs), writes, ends)
	t.ended = (*holding).outlived
	now.Store(t)
	result, err := t.run()
	t.report(result, err)
	for i, f := range fs {
		switch {
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
