package hold

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Guards returns condition checks of all rows that the grants depend on. The caller adds
// the checks to a transaction of its own.
func (g *Group) Guards() []types.TransactWriteItem { return each(rowsOf(g.locks()), (*row).guard) }

// rowsOf returns the rows that the locks in holds depend on: their records in order, and then the
// row of their session, if any.
func rowsOf(holds []*Lock) []*row {
	rows := each(holds, func(h *Lock) *row { return &h.row })
	if s := sessionOf(holds); s != nil {
		rows = append(rows, &s.row)
	}
	return rows
}

// sessionOf returns the session of the locks in holds, or nil if they have none. All locks of a
// group are trusted when it is made. So no two have different sessions: a client begins another
// session only when the last is no longer trusted.
func sessionOf(holds []*Lock) *session {
	for _, h := range holds {
		if h.session != nil {
			return h.session
		}
	}
	return nil
}

// GuardError ends the locks whose guards failed in a transaction that the caller has sent. The
// transaction contained all checks of Guards. The parameter "first" is the index of the first check
// in the transaction, and err is the transaction's error.
func (g *Group) GuardError(err error, first int) error {
	if err != nil {
		err = attempts.Joined(g.c.Requests.CheckTransactions(g.handles[0].ctx), err)
	}
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || first < 0 || first > len(cancelled.CancellationReasons) {
		return err
	}
	holds := g.locks()
	rows := rowsOf(holds)
	shown := map[*row]protocol.Item{}
	for i, reason := range cancelled.CancellationReasons[first:] {
		failed := i < len(rows) && aws.ToString(reason.Code) == "ConditionalCheckFailed"
		if failed && (reason.Item == nil || rows[i].isIn(&g.c.Table, reason.Item)) { // a reply that contains an item of another row is not about this guard
			shown[rows[i]] = reason.Item
		}
	}
	lost := cmp.Or(loseBy(shown, holds, err, (*Lock).endedOtherwise)...)
	return cmp.Or(core.Public(lost), err)
}

// loseBy ends each lock whose record or session row is in "shown", and then reports the losses.
// Those rows no longer show the grants; a nil item is a missing row. The result has one error per
// lock: nil, or the loss, which wraps err and otherwise(h).
func loseBy(shown map[*row]protocol.Item, holds []*Lock, err error, otherwise func(*Lock) error) []error {
	losses := make([]error, len(holds))
	var lost []*Lock
	lose := func(i int, loss error) {
		losses[i] = loss
		if holds[i].end(loss) {
			lost = append(lost, holds[i])
		}
	}
	for i, h := range holds {
		if item, gone := shown[&h.row]; gone {
			lose(i, h.lossShown(item, attempts.Joined(otherwise(h), err)))
		}
	}
	if s := sessionOf(holds); s != nil {
		if item, gone := shown[&s.row]; gone {
			reason := s.loseAs(s.lossShown(item, err))
			for i, h := range holds {
				if losses[i] == nil && h.session == s {
					lose(i, h.lostError(reason, nil, attempts.Joined(otherwise(h), err)))
				}
			}
		}
	}
	reportLosses(lost)
	return losses
}

// endedOtherwise returns why this client had ended the lock, for example by a release. It
// returns nil if the lock is current or was lost.
func (h *Lock) endedOtherwise() error {
	cause := h.lease.Cause()
	if errors.Is(cause, core.ErrLost) {
		return nil
	}
	return h.naming(cause)
}

// Read reads items in one transaction, which also checks that this grant is current. It repeats the
// transaction until DynamoDB answers, ctx is done, or the lock is no longer trusted.
func (l *Handle) Read(ctx context.Context, gets []types.TransactGetItem) ([]protocol.Item, error) {
	h := l.h
	if err := cmp.Or(h.c.Requests.CheckTransactions(ctx), h.checkGets(gets), l.Err()); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, h.c.Errors.Failed("read", h.key, attempts.Cause(ctx))
	}
	all := slices.Concat(gets, each(rowsOf([]*Lock{h}), (*row).get))
	var items []protocol.Item
	var ended error
	err := h.c.Requests.Repeat(ctx, func() (err error) {
		defer h.session.lockTransactions(ctx)()
		items, err = h.c.Requests.ReadTogether(ctx, all)
		return err
	}, func(f *attempts.Failure) error {
		if f.Cause != decide.Unreachable {
			h.c.ReportThrottled(ctx, h.key, h.token, f.Err)
		}
		ended = l.Err()
		return ended
	})
	switch {
	case ended != nil:
		return nil, ended
	case err != nil:
		return nil, h.c.Errors.Failed("read", h.key, attempts.Joined(attempts.Cause(ctx), err))
	}
	if err := h.stillHeld(items[len(gets):]); err != nil {
		if ended := l.ended(); ended != nil && !errors.Is(ended, core.ErrLost) {
			return nil, ended // this client had released the lock before the transaction
		}
		return nil, err
	}
	return items[:len(gets)], nil
}

// stillHeld checks the rows that a transaction has read. If they no longer show the grant or
// its session, stillHeld ends the trust in the lock, and returns an error.
func (h *Lock) stillHeld(items []protocol.Item) error {
	shown := map[*row]protocol.Item{}
	for i, r := range rowsOf([]*Lock{h}) {
		if !r.Stands(items[i]) {
			shown[r] = items[i]
		}
	}
	return core.Public(loseBy(shown, []*Lock{h}, nil, (*Lock).endedOtherwise)[0])
}

func (h *Lock) checkGets(gets []types.TransactGetItem) error {
	if most := attempts.MaxTransact - len(rowsOf([]*Lock{h})); len(gets) > most {
		return h.c.Errorf("read", h.key, "%d items: at most %d beside the lock's record and the row of a shared lease: "+
			"read them in several calls", len(gets), most)
	}
	for i, g := range gets {
		switch {
		case g.Get == nil:
			return h.c.Errorf("read", h.key, "item %d has no Get", i)
		case h.isIn(g.Get.TableName, g.Get.Key):
			return h.c.Errorf("read", h.key, "item %d is the lock's own record: Read reads it anyway; see protocol.Record and Data", i)
		case h.session != nil && h.session.isIn(g.Get.TableName, g.Get.Key):
			return h.c.Errorf("read", h.key, "item %d is the row of this client's shared lease: Read reads it anyway", i)
		}
	}
	return nil
}
