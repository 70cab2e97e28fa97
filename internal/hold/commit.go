package hold

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Commit sends writes in one transaction, which DynamoDB applies only if all grants of the
// group are current.
func (g *Group) Commit(ctx context.Context, writes []types.TransactWriteItem) error {
	if err := g.checkCommit(ctx, writes); err != nil {
		return err
	}
	t := newTransaction(ctx, g, writes, nil, nil)
	return g.c.Outlive(ctx, "commit", t.holds[0].key, t, func() error { return g.commit(t) })
}

// checkCommit returns an error if a commit of writes would certainly fail. It sends nothing.
func (g *Group) checkCommit(ctx context.Context, writes []types.TransactWriteItem) error {
	holds := g.inOrder()
	err := cmp.Or(g.c.Requests.CheckTransactions(ctx), g.c.checkWrites(holds, writes), g.Err())
	if err == nil && ctx.Err() != nil {
		return notSent(holds[0], attempts.Cause(ctx))
	}
	return err
}

// commit runs the transaction t while no other commit or release of the same locks runs.
func (g *Group) commit(t *transaction) error {
	defer t.stop()
	waiting, cancel := g.Bind(t.ctx)
	late, leave := takeTurns(waiting, t.holds)
	cancel()
	if late != nil {
		leave()
		return cmp.Or(g.Err(), notSent(late, attempts.Cause(t.ctx)))
	}
	_, err := t.run(leave) // run calls leave before it returns: the caller may then commit again, or release the locks
	return err
}

// CommitAndRelease commits like Commit, and also frees the keys: in the same transaction if the
// writes are applied, and otherwise by separate releases. If "wrong" is not nil, the options are
// invalid, and CommitAndRelease commits nothing and only frees the keys.
func (g *Group) CommitAndRelease(ctx context.Context, writes []types.TransactWriteItem, terms []Terms, wrong error) error {
	rs, err := g.releases(terms), wrong
	if err == nil {
		err = g.checkCommit(ctx, writes)
	}
	if err == nil {
		return g.commitAndRelease(ctx, rs, writes)
	}
	notDone(rs)
	return withReleases(err, g.release(ctx, rs))
}

// notDone makes the releases store no done mark, because the work was not committed.
func notDone(rs []*release) {
	for _, r := range rs {
		r.terms.Done = false
	}
}

// withReleases joins err, the error of a commit, with the errors of the releases that followed it.
// The result matches ErrUnknownOutcome only if err does. If err reports the loss of a lock, losses
// that the releases report are omitted.
func withReleases(err error, released []error) error {
	unknown := errors.Is(err, attempts.ErrUnknownOutcome)
	joined := []error{err}
	for _, r := range released {
		switch {
		case errors.Is(r, core.ErrLost) && errors.Is(err, core.ErrLost):
		case errors.Is(r, attempts.ErrUnknownOutcome) && !unknown:
			joined = append(joined, afterCommitError{r})
		default:
			joined = append(joined, r)
		}
	}
	return attempts.Joined(joined...)
}

// afterCommitError is the error of a release that had no answer, after a commit that wrote nothing.
// It matches the errors that it wraps, except ErrUnknownOutcome: otherwise callers would think that
// the outcome of the commit is unknown.
type afterCommitError struct{ error }

func (e afterCommitError) Is(target error) bool {
	return target != attempts.ErrUnknownOutcome && errors.Is(e.error, target)
}

func (e afterCommitError) As(target any) bool { return errors.As(e.error, target) }

// commitAndRelease ends the handles of the group. It also ends the trust in each lock that has no
// other handle. Then it sends one transaction, which contains the writes, and the releases of the
// locks that have no other handle.
func (g *Group) commitAndRelease(ctx context.Context, rs []*release, writes []types.TransactWriteItem) error {
	c := g.c
	ctx, stop := withoutReleaseOf(ctx, holdsOf(rs)...)
	defer stop()
	limit, cancel := c.AtLeastGrace(ctx, ctx)
	defer cancel()
	var ended error // why nothing can be committed; if set, the commit is not sent, but the releases continue
	for i, r := range rs {
		ended = cmp.Or(ended, g.handles[i].begin(limit, r))
	}
	slices.SortFunc(rs, func(a, b *release) int { return compareLocks(a.h, b.h) })
	if ended != nil {
		notDone(rs)
		return withReleases(ended, c.release(limit, rs))
	}
	var err error
	var now attempts.Latest
	_, unknown := attempts.Outlive(limit, c.Detach, &now, func() {
		late, leave := takeTurns(limit, holdsOf(rs))
		if late != nil { // limit has ended while another commit or release still held the mutex of a lock
			err = notSent(late, attempts.Cause(limit))
		} else {
			err = g.commitWithReleases(ctx, rs, writes, &now)
		}
		if err != nil {
			notDone(rs)
		}
		c.Detach(func() { // the remaining releases run in the background, as the outcome of the commit does not depend on them
			defer leave()
			left := slices.DeleteFunc(slices.Clone(rs), func(r *release) bool { return r.handle != nil || r.ended() })
			inParallel(len(left), func(i int) { left[i].free() })
		})
	})
	// Drop each handle before the waits below. A handle that is not dropped still counts as sharing
	// its grant, so a release of another handle would not free the key.
	for _, r := range rs {
		r.drop()
	}
	if unknown != nil {
		return c.UnknownOutcome("commit", rs[0].h.key, unknown)
	}
	released := each(rs, func(r *release) error { return r.wait(limit) })
	if err == nil { // errors of releases that followed the commit do not change the result of the commit
		return nil
	}
	return withReleases(err, released)
}

// begin is called before a commit that releases this handle. It ends the handle. If no other
// handle shares the grant, begin also begins r, the release of the grant. It returns an error
// if nothing can be committed.
func (l *Handle) begin(limit context.Context, r *release) error {
	left, before := l.leave()
	if !left && !before {
		if !r.begin(limit, core.ErrReleased) {
			return r.h.Ended()
		}
		return nil
	}
	r.handle = l
	r.open(limit)
	if before {
		r.end(nil)
		return l.h.naming(core.ErrReleased)
	}
	switch {
	case r.terms.Done:
		return notSent(l.h, errors.New("others share the grant, so that the work is done cannot be stored with this handle's release: the last one can"))
	case !r.terms.Changes.In(l.h.Record()):
		return notSent(l.h, errors.New("others share the grant, so its data or attributes cannot be stored with this handle's release: store them with Renew first"))
	}
	return nil
}

// commitWithReleases sends writes and releases in one transaction, which it also stores in *now. A
// grant that other handles share is guarded, not released. If the transaction is committed, its
// releases end. Otherwise only the releases of lost locks end. After an unknown outcome, the field
// "freeing" of each lock keeps the attempt, which may have freed the key.
func (g *Group) commitWithReleases(ctx context.Context, rs []*release, writes []types.TransactWriteItem, now *attempts.Latest) error {
	fs := make([]*freeing, len(rs)) // an element is nil if other handles share that lock's grant
	sent := make([]releaseAttempt, len(rs))
	ends := make([]types.TransactWriteItem, len(rs))
	for i, r := range rs {
		if r.handle != nil {
			ends[i] = r.h.guard()
			continue
		}
		var w *protocol.Write
		fs[i] = r.freeing()
		sent[i], w = fs[i].next()
		ends[i] = w.TransactItem(g.c.Table)
	}
	t := newTransaction(ctx, g, writes, ends, rs)
	now.Begin(t)
	result, err := t.run(func() {})
	for i, f := range fs {
		switch {
		case f == nil:
		case result.Step == decide.Committed:
			f.end(nil)
		case t.losses[i] != nil:
			f.end(core.Public(t.losses[i]))
		case result.Step == decide.Doubtful:
			f.left = max(f.left, maybeFreed)
			f.tried.Add(sent[i])
			f.tried.NoReply()
		}
	}
	return err
}

// notSent returns the error of a commit that sent nothing.
func notSent(h *Lock, cause error) error {
	return h.c.Errorf("commit", h.key, "nothing was sent: %w", cause)
}

func holdsOf(rs []*release) []*Lock { return each(rs, func(r *release) *Lock { return r.h }) }
