package leasehold

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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
	return g.g.Commit(ctx, writes)
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
	if g.isOnce() {
		opts = append(slices.Clip(opts), MarkDone())
	}
	terms, err := g.terms(opts)
	return g.g.CommitAndRelease(ctx, writes, terms, err)
}

// Guards is Group.Guards of this lock alone: one check, two under Config.SharedLease.
func (l *Lock) Guards() []types.TransactWriteItem { return l.group().Guards() }

// Guards returns the checks of all that the grants depend on, for a transaction that
// you build: a ConditionCheck for each lock, in the order of Locks, which fails once
// the record does not show the grant any more (grant, owner, token, not released) and,
// under Config.SharedLease, a last one that the shared lease stands. Use all of them:
// only together do they fail as soon as a grant has ended. They stay valid across
// renewals, and are for these grants only. A transaction may contain an item only once,
// so locks of one client under a shared lease need one Group.
//
// Give such a transaction a ClientRequestToken, or leave that to the SDK, and tell how
// it ended with GuardError.
func (g *Group) Guards() []types.TransactWriteItem { return g.g.Guards() }

// GuardError is Group.GuardError of this lock alone.
func (l *Lock) GuardError(err error, first int) error { return l.group().GuardError(err, first) }

// GuardError tells the locks how a transaction of yours ended, whose items from first
// on were Guards, all of them in their order. If one of those is what failed, the
// context of its lock ends, or those of all locks if it was their shared lease, and the
// error is a *LostError of the first lock that was lost, which wraps err. Otherwise it
// returns err: nil, for one.
func (g *Group) GuardError(err error, first int) error { return g.g.GuardError(err, first) }

// Read reads items in one transaction that sees this grant standing, and so
// everything that earlier holders committed. At most 99, 98 under
// Config.SharedLease. Items come in the order of gets, nil for one that does not
// exist.
//
// A plain read may show what was before a commit of the former holder that is
// still being carried out; this one cannot. ErrLost if the grant does not
// stand; the lock's context ends as well. Conflicts, throttling and lost
// replies are retried until ctx or the trust ends.
func (l *Lock) Read(ctx context.Context, gets []types.TransactGetItem) ([]map[string]types.AttributeValue, error) {
	return l.h.Read(ctx, gets)
}
