package leasehold

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

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
func (g *Group) Guards() []types.TransactWriteItem { return guardsOf(rowsOf(g.holds())) }

// rowsOf returns what the grants of holds depend on: their own records in order,
// and the row of their session.
func rowsOf(holds []*holding) []*ownRow {
	rows := make([]*ownRow, 0, len(holds)+1)
	for _, h := range holds {
		rows = append(rows, &h.ownRow)
	}
	if s := sessionOf(holds); s != nil {
		rows = append(rows, &s.ownRow)
	}
	return rows
}

// sessionOf returns the session that holds are under, nil for none. There are no two: a
// client begins another once it trusts no lock of the last, and locks are put together
// while all are trusted.
func sessionOf(holds []*holding) *session {
	for _, h := range holds {
		if h.session != nil {
			return h.session
		}
	}
	return nil
}

func guardsOf(rows []*ownRow) []types.TransactWriteItem {
	guards := make([]types.TransactWriteItem, len(rows))
	for i, row := range rows {
		guards[i] = row.guard()
	}
	return guards
}

// GuardError is Group.GuardError of this lock alone.
func (l *Lock) GuardError(err error, first int) error { return l.group().GuardError(err, first) }

// GuardError tells the locks how a transaction of yours ended, whose items from first
// on were Guards, all of them in their order. If one of those is what failed, the
// context of its lock ends, or those of all locks if it was their shared lease, and the
// error is a *LostError of the first lock that was lost, which wraps err. Otherwise it
// returns err: nil, for one.
func (g *Group) GuardError(err error, first int) error {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || first < 0 || first > len(cancelled.CancellationReasons) {
		return err
	}
	reasons := cancelled.CancellationReasons[first:]
	holds := g.holds()
	var failed []failedGuard
	for i, row := range rowsOf(holds) {
		if i >= len(reasons) {
			break
		}
		reason := reasons[i]
		ours := reason.Item == nil || row.isIn(&g.c.cfg.Table, reason.Item) // else first was another item
		if aws.ToString(reason.Code) == "ConditionalCheckFailed" && ours {
			failed = append(failed, failedGuard{row, reason.Item})
		}
	}
	for _, lost := range loseBy(failed, holds, err, (*holding).endedOtherwise) {
		if lost != nil {
			return lost
		}
	}
	return err
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
		reason := LostReason("") // of the session
		if s := sessionOf(holds); s != nil && f.row == &s.ownRow {
			reason = s.loseAs(s.lossShown(f.item, err))
		}
		for i, h := range holds {
			switch {
			case losses[i] != nil:
				continue
			case f.row == &h.ownRow:
				losses[i] = h.lossShown(f.item, joined(otherwise(h), err))
			case h.session != nil && f.row == &h.session.ownRow:
				losses[i] = h.lostError(reason, nil, joined(otherwise(h), err))
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
	return h.naming(cause)
}
