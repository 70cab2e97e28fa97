package leasehold

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/hold"
)

// Lock is one grant of one key. Its methods are safe for concurrent use, and
// none of them can change a later grant of the key. The zero Lock is of no use.
type Lock struct {
	c *Client
	h hold.Handle
}

// Key returns the key.
func (l *Lock) Key() Key { return l.h.Lock().Key() }

// Token returns the fencing token: above 0, and greater than that of every
// earlier grant of the key by leasehold, as long as the record is kept. It fits a
// signed 64-bit column and a JSON number.
func (l *Lock) Token() int64 { return l.h.Lock().Token() }

// Context returns a context that ends when the lock is lost, released, detached
// or its client closed. The cause is a *LostError, ErrReleased or
// ErrClosed. It has the values of Acquire's context, but neither its end nor a
// deadline.
//
// Its Err and Done read the clock, so they are right immediately after a pause
// of the process. A context that package context derives from it ends only when a
// timer of the runtime has fired. Bind returns one that reads the clock too.
func (l *Lock) Context() context.Context { return l.h.Context() }

// Err returns nil while the lock is trusted, and then context.Cause(l.Context()), with
// the key and the table.
func (l *Lock) Err() error { return l.h.Err() }

// String returns the key, the table and the token, for people.
func (l *Lock) String() string {
	if l == nil || l.c == nil {
		return "no lock"
	}
	return fmt.Sprintf("%v%s (token %d)", l.Key(), inTable(l.c.cfg.Table), l.Token())
}

// LogValue returns what String does as a group, for package slog.
func (l *Lock) LogValue() slog.Value {
	if l == nil || l.c == nil {
		return slog.StringValue(l.String())
	}
	return slog.GroupValue(slog.String("key", l.Key().String()), slog.String("table", l.c.cfg.Table), slog.Int64("token", l.Token()))
}

// Bind returns a copy of ctx that ends when ctx or the lock does, whichever is
// first. Call cancel when the work is done.
func (l *Lock) Bind(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	g := l.h.Group()
	return g.Bind(ctx)
}

// Record returns a copy of the record as this grant wrote it last. Nothing is
// sent.
func (l *Lock) Record() Record { return recordOf(l.h.Lock().Record()).clone() }

// TookOver returns the last record of the dead holder, if this grant took the key
// over from one: its work may be half done.
func (l *Lock) TookOver() (Record, bool) {
	dead := l.h.Lock().Dead()
	if dead == nil {
		return Record{}, false
	}
	return recordOf(*dead).clone(), true
}

// TrustedUntil returns when trust ends if no renewal succeeds, by the wall clock.
// After the lock has ended it is in the past.
func (l *Lock) TrustedUntil() time.Time { return l.h.TrustedUntil() }

// Do calls fn with Bind(ctx), and releases when fn returns, panics or exits. A
// panic goes on once the release is answered, or Config.ReleaseGrace has passed.
//
// Nil means: fn returned nil and the lock was held until then. If the lock was
// lost the error matches ErrLost, and fn's error as well. A release that failed,
// without an answer or refused, is logged and reported as an event but not
// returned: the work is done, and a caller who took the error for a failure of
// fn would do it twice. The client repeats it until the lease has ended, which frees the
// key. Of a lock that was acquired with Once or Every it is returned: the record may not say
// that the work is done, and then it is done again. Such a Do waits until the record says
// so or the lease has ended, whatever ctx says; Close ends the wait.
//
// If the lock has ended already, fn is not called and the error matches
// ErrNotRun.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, lock *Lock) error) error {
	return l.group().Do(ctx, func(ctx context.Context, _ *Group) error { return fn(ctx, l) })
}

// newLock is a handle that nothing has been granted to yet.
func newLock(c *Client) *Lock {
	l := &Lock{c: c}
	l.h.Of = l
	return l
}

// lockOf is the lock whose handle it is.
func lockOf(h *hold.Handle) *Lock { return h.Of.(*Lock) }

// warned are the warnings for l that a caller has asked for.
func (l *Lock) warned(asked []warning) []hold.Warning {
	warnings := make([]hold.Warning, len(asked))
	for i, w := range asked {
		warnings[i] = hold.Warning{Left: w.left, Call: func() { w.fn(l) }}
	}
	return warnings
}

// Renew renews now, and changes data, attributes or lease if opts say so.
// Needed only with WithoutRenewal or to store something. Failures are retried
// until ctx or the trust ends. When ctx ends while an attempt is without an
// answer the error is ErrUnknownOutcome: the lease may be renewed, the data
// stored. With a ctx that has ended before, nothing is sent.
func (l *Lock) Renew(ctx context.Context, opts ...RenewOption) error {
	c, h := l.c, l.h.Lock()
	var r hold.Renewal
	if err := noneNil(c, "renew", l.Key(), opts); err != nil {
		return err
	}
	for _, o := range opts {
		o.toRenew(&r)
	}
	if err := l.Err(); err != nil {
		return err
	}
	if r.Lease != 0 {
		if h.UnderSession() {
			return c.cfg.unsupported("WithLease together with SharedLease")
		}
		if err := c.checkLease("renew", l.Key(), r.Lease); err != nil {
			return err
		}
	}
	if err := c.checkChanges("renew", l.Key(), r.Changes); err != nil {
		return err
	}
	return l.h.Renew(ctx, r)
}

// Release frees the key. The lock's context ends before the write is sent. Nil means
// that the key was freed, ErrLost that the lock had been lost before. Other errors are
// not final: after ErrUnknownOutcome, when a write had no reply, the key may be free;
// after any other it is not yet. The client repeats such a release in the background, and
// Close once more, until the lease has ended, unless DynamoDB has refused it for good. To wait
// for it, call Release again. A ctx that has ended shortens Release to Config.ReleaseGrace, but
// does not prevent it.
//
// With MarkDone, Release waits until the mark is stored, the lease has ended, or Close has
// given up, whatever ctx says. Until the lease ends nobody else can do the work, and a caller
// that is told less would not know whether it is done again.
//
// If other handles share the grant (Reentrant), it ends this handle alone, and sends
// nothing. Data and attributes that it was to store are an error then, unless the
// record has them.
//
// With Config.SharedLease the lease goes on being renewed, and a release that failed is
// repeated until the key is free.
func (l *Lock) Release(ctx context.Context, opts ...ReleaseOption) error {
	return l.group().Release(ctx, opts...)
}

// Release frees all keys in parallel, each by a write of its own. It joins the errors, in
// the order of Locks, each as from Lock.Release, and may be called again like that.
// Options apply to every lock.
func (g *Group) Release(ctx context.Context, opts ...ReleaseOption) error {
	terms, err := g.terms(opts)
	if err != nil {
		return err
	}
	return g.g.Release(ctx, terms)
}

// terms are those of the release of each lock. With an error, of a bad option, they are as
// without options.
func (g *Group) terms(opts []ReleaseOption) ([]hold.Terms, error) {
	terms := make([]hold.Terms, len(g.locks))
	var bad error
	for i, l := range g.locks {
		t, err := l.c.newTerms(l.h.Lock(), opts)
		if err != nil {
			bad, t = cmp.Or(bad, err), hold.Terms{Delete: l.h.Lock().Want().Delete}
		}
		terms[i] = t
	}
	return terms, bad
}

// Commit runs writes in one transaction that lands only while this grant
// stands. It takes at most 99 writes, 98 under Config.SharedLease. Without writes it
// only checks whether the grant stands.
//
// Nil means that the writes have landed, once. ErrLost means that the grant had
// ended; the lock's context ends as well. *CommitError means that one of the writes
// failed, for example by its own condition; the lock is still held. In these two
// cases nothing was written, nor will be. ErrUnknownOutcome means that no reply came
// in time, or none that settles it: the writes may have landed, or may yet while the
// grant stands. Read what they were to change. An error that matches ErrUnknownOutcome
// matches neither ErrLost nor *CommitError. With any other error the request was refused
// or never sent, and has written nothing.
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
// logged and reported as an event. Otherwise the errors of the commit and of the release
// after it are joined. ErrUnknownOutcome is of the commit alone, as in Commit.
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
