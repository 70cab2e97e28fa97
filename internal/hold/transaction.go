package hold

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/fence"
)

// transaction is one call of Commit or CommitAndRelease: it runs a fence.Commit
// for locks, and ends those whose guards failed.
type transaction struct {
	*fence.Commit
	c      *Client
	ctx    context.Context // ends with the caller's, or when the client closes
	stop   context.CancelFunc
	holds  []*Lock           // in the order of keys
	rows   []*row            // whose guards they are: of holds, and of their sessions
	ended  func(*Lock) error // why no request may be begun under a lock; nil: one may
	losses []error           // of holds: how the commit found them to be lost
}

// newTransaction prepares a commit. ends are the releases of holds, which take the
// place of their guards; nil: none is released. ended is as in a transaction.
func newTransaction(ctx context.Context, holds []*Lock, writes, ends []types.TransactWriteItem, ended func(*Lock) error) *transaction {
	rows := rowsOf(holds)
	guards := guardsOf(rows)
	t := &transaction{
		c: holds[0].c, holds: holds, rows: rows, ended: ended, losses: make([]error, len(holds)),
	}
	t.ctx, t.stop = t.c.UntilClosing(ctx)
	t.Commit = fence.New(t.c.Requests, t, t.c.Now, writes, slices.Concat(ends, guards[len(ends):]), guards)
	return t
}

// run sends the transaction until its outcome is known, or cannot be. It is called
// once.
func (t *transaction) run() (fence.Result, error) {
	defer t.stop()
	r := t.Run(t.ctx)
	return r, t.errorOf(r)
}

// Answered reports whether no request is in flight, and begins no other.
func (t *transaction) Answered() bool { return !t.Leave() }

// report emits the event of the commit.
func (t *transaction) report(r fence.Result, err error) {
	t.c.Listener.Committed(context.WithoutCancel(t.ctx), Event{
		Key: t.holds[0].key, Token: t.holds[0].token, Took: r.Took, Requests: r.Requests, Err: err,
	})
}

// errorOf is the caller's error for a result.
func (t *transaction) errorOf(r fence.Result) error {
	key := t.holds[0].key
	switch r.Step {
	case decide.Committed:
		return nil
	case decide.NotHeld:
		return t.lost(r)
	case decide.Cancelled:
		return t.c.Errors.Uncommitted(key, r.Writes, r.Err)
	case decide.Rejected:
		return t.c.Errors.Failed("commit", key, r.Err)
	case decide.Doubtful:
		return t.c.UnknownOutcome("commit", key, errors.Join(context.Cause(t.ctx), r.Err))
	}
	for _, h := range t.holds {
		if err := t.ended(h); err != nil {
			return attempts.Joined(err, r.Err)
		}
	}
	return t.c.Errors.Failed("commit", key, fmt.Errorf("not committed: %w", errors.Join(context.Cause(t.ctx), r.Err)))
}

// lost ends the locks whose guards failed, or whose session's did, and returns
// how the first was lost.
func (t *transaction) lost(r fence.Result) error {
	failed := make([]failedGuard, len(r.Failed))
	for i, f := range r.Failed {
		failed[i] = failedGuard{t.rows[f.Guard], f.Item}
		if f.Item == nil { // there is none, or the engine does not return it
			failed[i].item, _ = t.c.Requests.Read(context.WithoutCancel(t.ctx), failed[i].row.key)
		}
	}
	t.losses = loseBy(failed, t.holds, r.Err, func(h *Lock) error {
		if !h.lease.IsOver() {
			return nil
		}
		if otherwise := t.ended(h); !errors.Is(otherwise, ErrLost) {
			return otherwise
		}
		return nil
	})
	return t.losses[slices.IndexFunc(t.losses, func(lost error) bool { return lost != nil })]
}

// Trusted reports whether a request may be begun under all the locks.
func (t *transaction) Trusted() bool {
	return !slices.ContainsFunc(t.holds, func(h *Lock) bool { return t.ended(h) != nil })
}

// Turn waits for the turn of the session, if there is one.
func (t *transaction) Turn(ctx context.Context) (leave func()) {
	if s := sessionOf(t.holds); s != nil {
		return s.turn(ctx)
	}
	return func() {}
}

// Throttled emits the event of a request that was throttled, or in conflict.
func (t *transaction) Throttled(err error) {
	t.c.throttled(context.WithoutCancel(t.ctx), t.holds[0].key, t.holds[0].token)(err)
}
