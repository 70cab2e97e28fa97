package leasehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// Commit runs writes in one transaction that lands only while this grant
// stands. At most 99 writes, 98 under Config.SharedLease; none at all asks
// whether the grant stands.
//
// Nil means that the writes have landed, once. ErrLost: the grant had ended;
// the lock's context ends as well. *CommitError: one of the writes failed, by
// its own condition for one; the lock is still held. Of both, nothing was
// written, nor will be. ErrUnknownOutcome: no reply came in time, or none that
// settles it; the writes may have landed, or may yet while the grant stands:
// read what they were to change. Anything else is a request that was refused
// or never sent, and has written nothing.
//
// Conflicts and throttling are retried under one idempotency token while the
// lock is trusted, lost replies until ctx ends, for at most five minutes. When
// ctx ends Commit returns at once. Commits of one lock take turns, and requests
// of all locks under a shared lease. A write to the
// lock's own record is refused before anything is sent. The caller's IAM policy
// must allow dynamodb:ConditionCheckItem on the lock table.
func (l *Lock) Commit(ctx context.Context, writes []types.TransactWriteItem) error {
	if err := l.h.c.checkWrites([]*holding{l.h}, writes); err != nil {
		return err
	}
	if err := l.Err(); err != nil {
		return err
	}
	return l.h.c.commit(ctx, []*holding{l.h}, writes)
}

// commit runs writes under the guards of holds, and waits for that.
func (c *Client) commit(ctx context.Context, holds []*holding, writes []types.TransactWriteItem) error {
	if ctx.Err() != nil {
		return notSent(holds[0], context.Cause(ctx))
	}
	t := newTransaction(ctx, holds, writes, guardsOf(holds))
	done := make(chan error, 1)
	c.detach(func() { done <- t.commit() })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	return t.left(ctx, done)
}

// commit takes the turn of every lock, one after the other, and runs t. The
// turns end before anybody is told, who may commit or release the locks.
func (t *transaction) commit() error {
	ran, err := t.inTurn()
	if ran {
		t.report(err)
	}
	return err
}

// inTurn runs t in the turn of every lock, and says whether it came to that.
func (t *transaction) inTurn() (ran bool, err error) {
	defer t.stop()
	for _, h := range t.holds {
		select {
		case h.committing <- struct{}{}:
			defer func() { <-h.committing }()
		case <-t.ctx.Done():
			return false, notSent(h, context.Cause(t.ctx))
		case <-h.over:
			return false, h.ended()
		}
	}
	_, err = t.run()
	return true, err
}

// CommitAndRelease is Commit that frees the key in the same transaction.
// The lock is given up whatever comes: if the writes did not land, a plain
// release follows. The context ends before anything is sent. A ctx that has
// ended shortens the release to Config.ReleaseGrace; it does not skip it.
//
// Of a grant that other handles share (Reentrant) it releases this handle.
func (l *Lock) CommitAndRelease(ctx context.Context, writes []types.TransactWriteItem, opts ...ReleaseOption) error {
	h := l.h
	e, err := h.c.newEnding(h, opts)
	if err != nil {
		e = ending{policy: h.want.policy}
	} else {
		err = h.c.checkWrites([]*holding{h}, writes)
	}
	switch {
	case err != nil:
	case l.Err() != nil:
		err = l.Err()
	case ctx.Err() != nil:
		err = notSent(h, context.Cause(ctx))
	case l.isShared():
		err = l.Commit(ctx, writes)
	default:
		return h.commitAndRelease(ctx, writes, e)
	}
	if l.leaveToOthers() {
		return err
	}
	return withRelease(err, h.release(ctx, e))
}

// withRelease joins the error of a commit and that of the release after it,
// which may be the same loss.
func withRelease(err, released error) error {
	if released == nil || errors.Is(err, ErrLost) && errors.Is(released, ErrLost) {
		return err
	}
	return errors.Join(err, released)
}

// isShared reports whether other handles share the grant.
func (l *Lock) isShared() bool {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	return len(l.h.handles) > 1
}

// commitAndRelease ends the trust and runs writes together with the release.
func (h *holding) commitAndRelease(ctx context.Context, writes []types.TransactWriteItem, e ending) error {
	ctx, stop := besides(ctx, h)
	defer stop()
	limit, cancel := atLeast(ctx, h.c.cfg.ReleaseGrace)
	defer cancel()
	op := newReleasing(limit)
	if !h.endWith(ErrReleased, op) {
		return withRelease(h.ended(), h.releaseWithin(limit, e, nil))
	}
	committed := make(chan error, 1)
	h.c.detach(func() {
		leave, ok := h.afterCommits(limit)
		defer leave()
		if !ok { // another commit has had all the time there was
			committed <- notSent(h, context.Cause(limit))
			op.end(h.freeNow(op, e, true))
			return
		}
		err, released := h.runAndFree(ctx, op, writes, e)
		committed <- withRelease(err, released)
		op.end(released)
	})
	select {
	case <-op.done:
		return <-committed
	case <-limit.Done():
	}
	select {
	case <-op.done:
		return <-committed
	default:
		return h.c.unknownOutcome("commit", h.key, context.Cause(limit))
	}
}

// runAndFree runs the writes with the release, and releases alone if they did
// not land: one error of each, nil for a release that was done by the writes'.
func (h *holding) runAndFree(ctx context.Context, op *releasing, writes []types.TransactWriteItem, e ending) (committed, released error) {
	started := h.c.now()
	f := h.freeingBy(op, started, true)
	a := h.c.newAttempt(h.want.timing.lease)
	t := newTransaction(ctx, []*holding{h}, writes, []types.TransactWriteItem{f.releaseOf(a, e).TransactItem(h.c.cfg.Table)})
	t.gaveUp = true
	step, err := t.run()
	t.report(err)
	switch step {
	case decide.Landed:
		h.reportRelease(started, 0, nil) // the commit's event has the requests
		h.c.lines.pass(h.key, h)
		return nil, nil
	case decide.NotHeld:
		h.reportRelease(started, 0, err)
		h.c.lines.pass(h.key, h)
		return err, err
	case decide.Doubtful:
		// A release that shows the version of this attempt was done by it.
		f.unknown = true
		f.note(a)
	}
	return err, h.freeNow(op, e, true)
}

// afterCommits waits for the commits of this lock and keeps others out until
// leave is called; false: limit came first.
func (h *holding) afterCommits(limit context.Context) (leave func(), ok bool) {
	select {
	case h.committing <- struct{}{}:
		return func() { <-h.committing }, true
	case <-limit.Done():
		return func() {}, false
	}
}

// betweenCommits keeps commits out until leave is called, so that a renewal
// does not conflict with them; false: one is under way.
func (h *holding) betweenCommits() (leave func(), ok bool) {
	select {
	case h.committing <- struct{}{}:
		return func() { <-h.committing }, true
	default:
		return func() {}, false
	}
}

// besideCommits is betweenCommits that waits for a commit under way, but for no
// more than a quarter of the trust that is left.
func (h *holding) besideCommits() (leave func()) {
	patience := time.NewTimer(h.c.now().Remaining(h.trustedUntil()) / 4)
	defer patience.Stop()
	select {
	case h.committing <- struct{}{}:
		return func() { <-h.committing }
	case <-patience.C:
	case <-h.over:
	}
	return func() {}
}

// notSent is the error of a call that has sent nothing.
func notSent(h *holding, cause error) error {
	return fmt.Errorf("leasehold: commit %v: nothing was sent: %w", h.key, cause)
}
