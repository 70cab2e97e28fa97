package hold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/fence"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// transaction is one call of Commit or CommitAndRelease. It runs a fence.Commit under the
// locks, and ends each lock whose guard failed.
type transaction struct {
	*fence.Commit
	c        *Holds
	group    *Group
	ctx      context.Context // ends with the caller's context, or when the client closes
	stop     context.CancelFunc
	holds    []*Lock    // locks of the commit, sorted by key
	releases []*release // the releases of holds, for CommitAndRelease; nil for Commit
	losses   []error    // one element for each lock in holds: the loss that the commit has found, or nil
}

// newTransaction prepares a commit. For CommitAndRelease, "releases" and "ends" have one element
// for each lock, sorted by key: its release, and the write that frees the key. If other handles
// share the grant, that write is the lock's guard. For Commit, both are nil.
func newTransaction(ctx context.Context, g *Group, writes, ends []types.TransactWriteItem, releases []*release) *transaction {
	holds := g.inOrder()
	guards := each(rowsOf(holds), (*row).guard)
	t := &transaction{c: g.c, group: g, holds: holds, releases: releases, losses: make([]error, len(holds))}
	t.ctx, t.stop = t.c.UntilClosing(ctx)
	t.Commit = fence.New(t.c.Env, t, writes, slices.Concat(ends, guards[len(ends):]), guards)
	return t
}

// run sends the transaction until its outcome is known, or the commit has no time left. It
// then calls leave, and emits the event of the commit. The caller must call run only once.
func (t *transaction) run(leave func()) (fence.Result, error) {
	defer t.stop()
	r := t.Run(t.ctx)
	err := t.errorOf(r)
	leave()
	t.c.Report(context.WithoutCancel(t.ctx), core.Event{Kind: core.Committed,
		Key: t.holds[0].key, Token: t.holds[0].token, Took: r.Took, Requests: r.Requests, Err: err,
	})
	return r, err
}

// errorOf returns the error of a commit with the result r, for the caller of the commit.
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
		return t.c.UnknownOutcome("commit", key, errors.Join(attempts.Cause(t.ctx), r.Err))
	}
	for _, h := range t.holds {
		if err := t.ended(h); err != nil {
			return attempts.Joined(err, r.Err)
		}
	}
	return t.c.Errors.Failed("commit", key, fmt.Errorf("not committed: %w", errors.Join(attempts.Cause(t.ctx), r.Err)))
}

// lost ends each lock whose own guard or whose session's guard failed. It returns the loss
// of the first lost lock.
func (t *transaction) lost(r fence.Result) error {
	rows, shown := rowsOf(t.holds), map[*row]protocol.Item{}
	for _, guard := range slices.Sorted(maps.Keys(r.Failed)) {
		row, item := rows[guard], r.Failed[guard]
		if item == nil { // the row is missing, or the reply does not contain it
			item, _ = t.c.Requests.Read(context.WithoutCancel(t.ctx), row.key)
		}
		shown[row] = item
	}
	t.losses = loseBy(shown, t.holds, r.Err, func(h *Lock) error {
		if !h.lease.IsOver() {
			return nil
		}
		if otherwise := t.ended(h); !errors.Is(otherwise, core.ErrLost) {
			return otherwise
		}
		return nil
	})
	return core.Public(cmp.Or(t.losses...))
}

// ended returns nil while the lock h allows the commit to begin another request. Otherwise it
// returns the error with which the lock, or the caller's handle of it, has ended.
func (t *transaction) ended(h *Lock) error {
	switch {
	case t.releases == nil:
		return t.group.handles[slices.IndexFunc(t.group.handles, func(l *Handle) bool { return l.h == h })].ended()
	// CommitAndRelease itself has ended this lock. The commit may continue for as long as the lock
	// would be trusted if CommitAndRelease had not ended it.
	case t.releases[slices.Index(t.holds, h)].handle == nil:
		if why, lost := h.lease.Outlived(); lost {
			return core.Public(h.lossOf(why))
		}
		return nil
	}
	return h.Ended() // CommitAndRelease has ended only this handle; the commit may continue while the shared grant is trusted
}

// Trusted reports whether the commit may still begin a request: the method ended returns nil for
// each of its locks.
func (t *transaction) Trusted() bool {
	return !slices.ContainsFunc(t.holds, func(h *Lock) bool { return t.ended(h) != nil })
}

// LockSession blocks other transactions that check the session's row. It unblocks them when leave
// is called. LockSession does nothing if the locks have no session.
func (t *transaction) LockSession(ctx context.Context) (leave func()) {
	return sessionOf(t.holds).lockTransactions(ctx)
}

// Throttled emits the event of a request that DynamoDB throttled, or rejected because of a
// conflict with a transaction.
func (t *transaction) Throttled(err error) {
	t.c.ReportThrottled(context.WithoutCancel(t.ctx), t.holds[0].key, t.holds[0].token, err)
}

// checkWrites returns an error if no transaction can contain both the writes and the guards
// of the locks.
func (c *Holds) checkWrites(holds []*Lock, writes []types.TransactWriteItem) error {
	rows, key := rowsOf(holds), holds[0].key
	switch most := attempts.MaxTransact - len(rows); {
	case most < 0:
		return c.Errorf("commit", key, "%d guards alone: a transaction takes %d items: commit under fewer locks at once",
			len(rows), attempts.MaxTransact)
	case len(writes) > most:
		return c.Errorf("commit", key, "%d writes: at most %d beside the guards, which are one for each lock and one for a shared lease: "+
			"split them, or write one item that refers to the rest", len(writes), most)
	}
	for i, w := range writes {
		table, item, n := target(w)
		if n != 1 {
			return c.Errorf("commit", key, "write %d has %d operations: give each exactly one of ConditionCheck, Put, Update and Delete", i, n)
		}
		switch of := slices.IndexFunc(rows, func(r *row) bool { return r.isIn(table, item) }); {
		case of >= len(holds):
			return c.Errorf("commit", key, "write %d is to the row of this client's shared lease, which nobody else may write", i)
		case of >= 0:
			return c.Errorf("commit", rows[of].key, "write %d is to the lock's own record: change that with Renew, or with options of CommitAndRelease",
				i)
		}
	}
	return nil
}

// target returns the table that a write names, the item or key in the write, and the number of
// operations in the write.
func target(w types.TransactWriteItem) (table *string, item protocol.Item, operations int) {
	if op := w.ConditionCheck; op != nil {
		table, item, operations = op.TableName, op.Key, operations+1
	}
	if op := w.Put; op != nil {
		table, item, operations = op.TableName, op.Item, operations+1
	}
	if op := w.Update; op != nil {
		table, item, operations = op.TableName, op.Key, operations+1
	}
	if op := w.Delete; op != nil {
		table, item, operations = op.TableName, op.Key, operations+1
	}
	return table, item, operations
}
