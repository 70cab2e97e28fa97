package hold

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Guards returns the checks of all that the grants depend on, for a transaction of the
// caller's.
func (g *Group) Guards() []types.TransactWriteItem { return guardsOf(rowsOf(g.locks())) }

// rowsOf returns what the grants of holds depend on: their own records in order,
// and the row of their session.
func rowsOf(holds []*Lock) []*row {
	rows := make([]*row, 0, len(holds)+1)
	for _, h := range holds {
		rows = append(rows, &h.row)
	}
	if s := sessionOf(holds); s != nil {
		rows = append(rows, &s.row)
	}
	return rows
}

// sessionOf returns the session that holds are under, nil for none. There are no two: a
// client begins another once it trusts no lock of the last, and locks are put together
// while all are trusted.
func sessionOf(holds []*Lock) *session {
	for _, h := range holds {
		if h.session != nil {
			return h.session
		}
	}
	return nil
}

func guardsOf(rows []*row) []types.TransactWriteItem {
	guards := make([]types.TransactWriteItem, len(rows))
	for i, r := range rows {
		guards[i] = r.guard()
	}
	return guards
}

// GuardError reports to the locks how a transaction of the caller's ended, whose items from
// first on were Guards.
func (g *Group) GuardError(err error, first int) error {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || first < 0 || first > len(cancelled.CancellationReasons) {
		return err
	}
	reasons := cancelled.CancellationReasons[first:]
	holds := g.locks()
	shown := map[*row]protocol.Item{}
	for i, r := range rowsOf(holds) {
		if i >= len(reasons) {
			break
		}
		reason := reasons[i]
		ours := reason.Item == nil || r.isIn(&g.c.Table, reason.Item) // else first was another item
		if aws.ToString(reason.Code) == "ConditionalCheckFailed" && ours {
			shown[r] = reason.Item
		}
	}
	for _, lost := range loseBy(shown, holds, err, (*Lock).endedOtherwise) {
		if lost != nil {
			return lost
		}
	}
	return err
}

// loseBy ends every lock that depends on a row which no longer shows its grant, and returns how
// each of holds was lost, nil if it was not. No grant comes back: a guard that has failed can
// never pass again. shown has the rows as they were then; nil for a row that was not there. The
// error of a loss is err, joined with the error of otherwise, which had ended the lock before.
// All have ended before one is reported.
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

// endedOtherwise returns the reason why the grant was given up here, nil if it was not.
func (h *Lock) endedOtherwise() error {
	cause := h.lease.Cause()
	if errors.Is(cause, core.ErrLost) {
		return nil
	}
	return h.naming(cause)
}
