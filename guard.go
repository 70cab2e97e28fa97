package leasehold

import (
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Guard returns the ConditionCheck that fails once the lock's record does not
// show this grant any more (grant, owner, token, not released). It is for a
// transaction that you build, stays valid across renewals, and is for this grant
// only. Under Config.SharedLease the grant depends on more than that: use Guards.
//
// Give such a transaction a ClientRequestToken, or leave that to the SDK, and
// tell the lock how it ended with GuardError.
func (l *Lock) Guard() types.TransactWriteItem { return l.h.guard() }

// Guards returns the checks of all that this grant depends on: Guard and, under
// Config.SharedLease, the check that the shared lease stands. Use both: only
// together do they fail as soon as the grant has ended. One alone may pass until
// somebody else is granted the lock. For several locks of one client use
// Group.Guards, or leave out the second check of all but one: a transaction may
// contain an item only once.
func (l *Lock) Guards() []types.TransactWriteItem { return l.group().Guards() }

// Guards returns the checks of all that the grants depend on, for a transaction that
// you build: a guard for each lock, in the order of Locks, and under
// Config.SharedLease a last check that the shared lease stands, which
// Lock.GuardError of any of the locks accepts. They fail once a grant has ended, and
// stay valid across renewals.
func (g *Group) Guards() []types.TransactWriteItem { return guardsOf(rowsOf(g.holds())) }

// rowsOf returns what the grants of holds depend on: their own records in order,
// and the rows of their sessions, each once.
func rowsOf(holds []*holding) []*ownRow {
	rows := make([]*ownRow, 0, len(holds)+1)
	for _, h := range holds {
		rows = append(rows, &h.ownRow)
	}
	for _, s := range sessionsOf(holds) {
		rows = append(rows, &s.ownRow)
	}
	return rows
}

// sessionsOf returns the sessions that holds are under, each once.
func sessionsOf(holds []*holding) []*session {
	var sessions []*session
	for _, h := range holds {
		if h.session != nil && !slices.Contains(sessions, h.session) {
			sessions = append(sessions, h.session)
		}
	}
	return sessions
}

func guardsOf(rows []*ownRow) []types.TransactWriteItem {
	guards := make([]types.TransactWriteItem, len(rows))
	for i, row := range rows {
		guards[i] = row.guard()
	}
	return guards
}

// GuardError tells the lock how a transaction of yours ended. Item i of the
// transaction was the lock's Guard, or one of its Guards: call it for each of them.
// If item i is what failed, the lock's context ends, or those of all locks if it was
// their shared lease, and the error is a *LostError that wraps err. Otherwise it
// returns err.
func (l *Lock) GuardError(err error, i int) error {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || i < 0 || i >= len(cancelled.CancellationReasons) {
		return err
	}
	reason := cancelled.CancellationReasons[i]
	if aws.ToString(reason.Code) != "ConditionalCheckFailed" {
		return err
	}
	h, item := l.h, reason.Item
	failed := failedGuard{&h.ownRow, item}
	switch {
	case item == nil, h.isIn(&h.c.cfg.Table, item):
	case h.session != nil && h.session.isIn(&h.c.cfg.Table, item):
		failed.row = &h.session.ownRow
	default:
		return err // of something else: whatever failed, it was not this lock's guard
	}
	return loseBy([]failedGuard{failed}, []*holding{h}, err, (*holding).endedOtherwise)[0]
}

// failedGuard is a guard that has failed. It can never pass again: no grant comes
// back.
type failedGuard struct {
	row  *ownRow       // whose it is: a lock's, or a session's
	item protocol.Item // as it was then; nil: there was none
}

// loseBy ends every lock that depends on a guard that failed, and returns how each of
// holds was lost; nil: it was not. The error of a loss is err, joined with what
// otherwise says had ended the lock before. All have ended before one is reported.
func loseBy(failed []failedGuard, holds []*holding, err error, otherwise func(*holding) error) []*LostError {
	losses := make([]*LostError, len(holds))
	var told []loss
	for _, f := range failed {
		lost := f.row.lossShown(f.item, err)
		for _, s := range sessionsOf(holds) {
			if f.row == &s.ownRow {
				s.loseWith(lost) // and with it every lock of the session
			}
		}
		for i, h := range holds {
			switch {
			case losses[i] != nil:
				continue
			case f.row == &h.ownRow:
				losses[i] = h.lossShown(f.item, joined(otherwise(h), err))
			case h.session != nil && f.row == &h.session.ownRow:
				losses[i] = h.lostError(lost.Reason, nil, joined(otherwise(h), err))
			default:
				continue
			}
			if h.end(losses[i]) {
				told = append(told, newLoss(h, losses[i]))
			}
		}
	}
	tellOf(told)
	return losses
}

// endedOtherwise is why the grant was given up here, nil if it was not.
func (h *holding) endedOtherwise() error {
	cause := h.lease.Cause()
	if errors.Is(cause, ErrLost) {
		return nil
	}
	return cause
}
