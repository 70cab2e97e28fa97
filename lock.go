package leasehold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/lease"
)

// Lock is one grant of one key. Its methods are safe for concurrent use, and never affect a
// later grant of the key. The zero Lock is not usable.
type Lock struct {
	c *Client
	h hold.Handle
}

// Key returns the key.
func (l *Lock) Key() Key { return l.h.Lock().Key() }

// Token returns the fencing token. It is positive, fits a JSON number, and is greater than
// every earlier token of the key, as long as the record is kept.
func (l *Lock) Token() int64 { return l.h.Lock().Token() }

// Context returns a context that is cancelled when the lock is lost, released or detached, or
// its client is closed. The cause is a *LostError, ErrReleased or ErrClosed. After a pause of the
// process, this context and contexts from Bind show a loss immediately, because their methods read
// the clock. Contexts that the caller derives from them are cancelled later, by a timer.
func (l *Lock) Context() context.Context { return l.h.Context() }

// Err returns nil while the lock is trusted, then the cause of Lock.Context.
func (l *Lock) Err() error { return l.h.Err() }

// String returns key, table and token as readable text.
func (l *Lock) String() string {
	if l == nil || l.c == nil {
		return "no lock"
	}
	return fmt.Sprintf("%v%s (token %d)", l.Key(), inTable(l.c.cfg.Table), l.Token())
}

// LogValue returns key, table and token as a group, for package slog.
func (l *Lock) LogValue() slog.Value {
	if l == nil || l.c == nil {
		return slog.StringValue(l.String())
	}
	return slog.GroupValue(slog.String("key", l.Key().String()), slog.String("table", l.c.cfg.Table), slog.Int64("token", l.Token()))
}

// Bind returns a copy of ctx that is also cancelled when the lock's context is cancelled. Call
// cancel when the work is done.
func (l *Lock) Bind(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return l.group().Bind(ctx)
}

// Record returns a copy of the record as this grant wrote it last.
func (l *Lock) Record() Record { return recordOf(l.h.Lock().Record()) }

// TookOver returns the dead holder's last record, and true, if this grant took the key over
// from a dead holder. The work of that holder may be half done.
func (l *Lock) TookOver() (Record, bool) {
	if dead := l.h.Lock().Dead(); dead != nil {
		return recordOf(*dead), true
	}
	return Record{}, false
}

// TrustedUntil returns the wall-clock time until which the lock is trusted if no renewal
// succeeds. After the lock has ended, this time is in the past.
func (l *Lock) TrustedUntil() time.Time { return l.h.TrustedUntil() }

// Do calls fn with Bind(ctx), and releases the lock when fn returns, panics or calls
// runtime.Goexit. A panic of fn continues once the release has a reply, or Config.ReleaseGrace
// has passed. If the lock has already ended, Do does not call fn: the error matches ErrNotRun.
//
// Do returns fn's error, joined with ErrLost if the lock was lost before fn returned. A failed
// release is only logged and reported as an event: if Do returned its error, a caller might repeat
// the work. With Once or Every, Do releases with MarkDone if fn returned nil. It then also returns
// the release's error: without the mark, a later call repeats the work.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, lock *Lock) error) error {
	return l.group().Do(ctx, func(ctx context.Context, _ *Group) error { return fn(ctx, l) })
}

// newLock returns a Lock for a request that has no grant yet. The functions that the user gave
// to WithExpiryWarning will be called with this Lock.
func newLock(c *Client, r *request) *Lock {
	l := &Lock{c: c}
	l.h.Of, l.h.Once = l, !r.Once.None()
	for _, w := range r.warnings {
		l.h.Warnings = append(l.h.Warnings, &lease.Warning{Left: w.left, Call: func() { w.fn(l) }})
	}
	return l
}

// lockOf returns the Lock that a handle belongs to.
func lockOf(h *hold.Handle) *Lock { return h.Of.(*Lock) }

// Group is several locks held under one context. Its methods are safe for concurrent use.
// The zero Group is not usable.
type Group struct {
	g     hold.Group
	locks []*Lock // locks in the order in which the caller first named their keys
}

func newGroup(ctx context.Context, locks []*Lock) *Group {
	handles := make([]*hold.Handle, len(locks))
	for i, l := range locks {
		handles[i] = &l.h
	}
	return &Group{g: hold.NewGroup(ctx, handles), locks: locks}
}

// group returns a Group that contains only this lock. The methods that Lock and Group have in
// common are implemented on Group.
func (l *Lock) group() *Group { return &Group{g: l.h.Group(), locks: []*Lock{l}} }

// Locks returns the locks in the order in which their keys were first given.
func (g *Group) Locks() []*Lock { return slices.Clone(g.locks) }

// Context returns a context that ends when any lock ends, with its cause.
func (g *Group) Context() context.Context { return g.g.Context() }

// Err returns the first error of the locks, or nil while all are trusted.
func (g *Group) Err() error { return g.g.Err() }

// Bind is Lock.Bind for all locks: the context ends when the first lock ends.
func (g *Group) Bind(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return g.g.Bind(ctx)
}

// Do is Lock.Do for all locks. If one lock has already ended, Do does not call fn and
// releases the other locks.
func (g *Group) Do(ctx context.Context, fn func(ctx context.Context, group *Group) error) (err error) {
	if err := g.beginWork(ctx); err != nil {
		return &markedError{err, ErrNotRun}
	}
	returned := false
	defer func() {
		within := ctx
		if !returned { // after a panic, Do waits at most Config.ReleaseGrace for the release, even if ctx has not ended
			within = hold.EndedContext()
		}
		if lost := g.endWork(within, returned && err == nil); lost != nil && !errors.Is(err, ErrLost) {
			err = errors.Join(err, lost)
		}
	}()
	bound, cancel := g.Bind(ctx)
	defer cancel()
	err = fn(bound, g)
	returned = true
	return err
}

// beginWork records, for every lock, that a function in Do is running under it. If one lock has
// ended, beginWork records nothing, and releases the other locks.
func (g *Group) beginWork(ctx context.Context) error {
	for i, l := range g.locks {
		if err := l.h.BeginWork(); err != nil {
			for _, begun := range g.locks[:i] {
				begun.h.EndWork()
			}
			if others := slices.Concat(g.locks[:i], g.locks[i+1:]); len(others) > 0 {
				_ = newGroup(ctx, others).Release(ctx) // errors of these releases are reported as events
			}
			return err
		}
	}
	return nil
}

// endWork undoes beginWork and releases the locks, with the mark of Once or Every if done is true.
// It returns an error if a lock was lost, or if the mark may be missing. Other release errors are
// only logged and reported as events.
func (g *Group) endWork(ctx context.Context, done bool) error {
	var lost []error
	for _, l := range g.locks {
		if cause := l.h.Lock().Ended(); errors.Is(cause, ErrLost) {
			lost = append(lost, cause)
		}
	}
	if done && len(lost) == 0 && g.isOnce() {
		defer g.locks[0].h.EndWork() // deferred, as Close could otherwise release the lock before the mark is stored
		if err := g.Release(ctx, MarkDone()); !errors.Is(err, hold.ErrShared) {
			return err
		}
		return nil
	}
	for _, l := range g.locks {
		l.h.EndWork()
	}
	if err := g.Release(ctx); len(lost) == 0 && errors.Is(err, ErrLost) {
		return err
	}
	return errors.Join(lost...)
}

// isOnce reports whether the group is a single lock that was acquired with Once or Every.
// It returns false for a group of several locks.
func (g *Group) isOnce() bool { return g.locks[0].h.Once }

// Renew stores data, attributes or lease from opts, and renews the lease, but no shared one
// (Config.SharedLease). A lock WithoutRenewal needs it to stay held. Failed requests are retried
// until ctx ends or the lock is lost.
func (l *Lock) Renew(ctx context.Context, opts ...RenewOption) error {
	c, h := l.c, l.h.Lock()
	var ch lease.Changes
	if err := apply(c, "renew", l.Key(), opts, RenewOption.toRenew, &ch); err != nil {
		return err
	}
	if err := l.Err(); err != nil {
		return err
	}
	if ch.Lease != 0 {
		if h.UnderSession() {
			return c.cfg.unsupported("WithLease together with SharedLease")
		}
		if err := c.checkLease("renew", l.Key(), ch.Lease); err != nil {
			return err
		}
	}
	if err := c.checkChanges("renew", l.Key(), ch.Record); err != nil {
		return err
	}
	return l.h.Renew(ctx, ch)
}

// Release frees the key. The lock's context is cancelled before the write is sent. Release returns
// nil if the key was freed, and ErrLost if the lock had been lost before. After ErrUnknownOutcome
// the key may be free. After any other error the key is still held.
//
// In the background, a failed release is repeated until the lease expires or DynamoDB refuses
// it for good; with Config.SharedLease, until the key is free. Close repeats it once more. Call
// Release again to wait for the outcome. If ctx has ended, Release lasts at most
// Config.ReleaseGrace.
//
// If other handles share the grant (Reentrant), Release ends this handle alone and sends
// nothing. Options that change the record are then an error.
func (l *Lock) Release(ctx context.Context, opts ...ReleaseOption) error {
	return l.group().Release(ctx, opts...)
}

// Release releases all locks in parallel (see Lock.Release) and joins errors.
func (g *Group) Release(ctx context.Context, opts ...ReleaseOption) error {
	terms, err := g.terms(opts)
	if err != nil {
		return err
	}
	return g.g.Release(ctx, terms)
}

// terms returns the terms of each lock's release: the terms set when the lock was acquired, changed
// by opts. If opts are invalid for a lock, terms leaves this lock's terms unchanged, and returns an
// error.
func (g *Group) terms(opts []ReleaseOption) ([]hold.Terms, error) {
	terms := make([]hold.Terms, len(g.locks))
	var bad error
	for i, l := range g.locks {
		var err error
		terms[i], err = l.c.newTerms(l.h.Lock(), opts)
		bad = cmp.Or(bad, err)
	}
	return terms, bad
}

// Commit runs at most 99 writes (98 under Config.SharedLease) in one transaction that lands
// only while this grant is current. Without writes it only checks the grant.
//
// It returns nil if the writes have landed, exactly once. If the grant had ended, it cancels
// the lock's context and returns ErrLost. It returns a *CommitError if one write failed, for
// example by its own condition; the lock is then still held. After ErrUnknownOutcome the writes
// may have landed, or may still land while the grant is current: read the items they change.
// After any other error nothing was or will be written.
//
// Conflicts and throttling are retried under one idempotency token while the lock is
// trusted. Requests without a reply are retried until ctx ends, for at most five minutes.
// Commits of one lock take turns. A write to the lock's own record is an error. The IAM policy
// must allow dynamodb:ConditionCheckItem on the lock table. A table that is strongly consistent
// across Regions has no transactions: with package regions, the error is an *UnsupportedError.
func (l *Lock) Commit(ctx context.Context, writes []types.TransactWriteItem) error {
	return l.group().Commit(ctx, writes)
}

// Commit is like Lock.Commit, with at most 100 - len(Guards()) writes that land only while
// all grants are current. ErrLost names the first lost lock.
func (g *Group) Commit(ctx context.Context, writes []types.TransactWriteItem) error {
	return g.g.Commit(ctx, writes)
}

// CommitAndRelease is Commit, and frees the key in the same transaction. If the writes did not
// land, a separate release follows. The lock's context is cancelled before anything is sent.
//
// It returns nil if the writes, and the changes in opts, have landed. Otherwise it joins the errors
// of the commit and of the release; ErrUnknownOutcome then refers to the commit. If other handles
// share the grant (Reentrant), only this handle ends. If the others end meanwhile, a release
// follows: its failure is only logged and reported as an event.
func (l *Lock) CommitAndRelease(ctx context.Context, writes []types.TransactWriteItem, opts ...ReleaseOption) error {
	return l.group().CommitAndRelease(ctx, writes, opts...)
}

// CommitAndRelease is Lock.CommitAndRelease for all locks.
func (g *Group) CommitAndRelease(ctx context.Context, writes []types.TransactWriteItem, opts ...ReleaseOption) error {
	if g.isOnce() {
		opts = append(slices.Clip(opts), MarkDone())
	}
	terms, err := g.terms(opts)
	return g.g.CommitAndRelease(ctx, writes, terms, err)
}

// Guards is like Group.Guards, but for this lock alone.
func (l *Lock) Guards() []types.TransactWriteItem { return l.group().Guards() }

// Guards returns checks for a transaction of your own: a ConditionCheck for each lock, in the order
// of Locks. Under Config.SharedLease, a last check is for the shared lease. Use all checks:
// together they succeed only while all grants are current. They stay valid across renewals. A
// transaction may contain an item only once. So put locks that share a lease in one Group: its
// Guards check the shared lease only once.
//
// Pass the transaction's error to GuardError. Tables that are strongly consistent across
// Regions refuse transactions.
func (g *Group) Guards() []types.TransactWriteItem { return g.g.Guards() }

// GuardError is like Group.GuardError, but for this lock alone.
func (l *Lock) GuardError(err error, first int) error { return l.group().GuardError(err, first) }

// GuardError takes err, the error of a transaction with all of Guards; first is the index of the
// first guard. It cancels the context of each lock whose guard failed, or all contexts if the
// shared lease's guard failed. It returns err or the *LostError of the first lost lock, which wraps
// err.
func (g *Group) GuardError(err error, first int) error { return g.g.GuardError(err, first) }

// Read reads at most 99 items (98 under Config.SharedLease) in one transaction that succeeds
// only while this grant is current. So it sees everything that earlier holders have committed.
// A plain read may miss a commit that DynamoDB is still executing. The items are in the order
// of gets, nil for a missing item. If the grant has ended, Read cancels the lock's context and
// returns ErrLost. Failed requests are retried until ctx ends or the lock is lost.
func (l *Lock) Read(ctx context.Context, gets []types.TransactGetItem) ([]map[string]types.AttributeValue, error) {
	return l.h.Read(ctx, gets)
}
