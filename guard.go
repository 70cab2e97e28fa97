package leasehold

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Guard returns the ConditionCheck that fails once the lock's record does not
// show this grant any more (grant, owner, token, not released), for a
// transaction you build. It survives renewals; it is for this grant only. Under
// Config.SharedLease that is not all that the grant rests on: use Guards.
//
// Give such a transaction a ClientRequestToken, or leave that to the SDK, and
// tell the lock how it ended with GuardError.
func (l *Lock) Guard() types.TransactWriteItem { return l.h.guard() }

// Guards returns all that this grant rests on: Guard and, under
// Config.SharedLease, the check that the shared lease stands. One of the two
// holds on for as long as nobody else has been granted the lock; it is both that
// fail as soon as the grant has ended. Of several locks of one client use
// Group.Guards, or leave out the second: a transaction takes an item once.
func (l *Lock) Guards() []types.TransactWriteItem { return guardsOf(guarded([]*holding{l.h})) }

// guarded returns what the grants of holds rest on: their own records in order,
// and the rows of the sessions that they are under, each once.
func guarded(holds []*holding) []*holding {
	all := slices.Clone(holds)
	for _, h := range holds {
		if h.session != nil && !slices.Contains(all[len(holds):], h.session.row) {
			all = append(all, h.session.row)
		}
	}
	return all
}

func guardsOf(holds []*holding) []types.TransactWriteItem {
	guards := make([]types.TransactWriteItem, len(holds))
	for i, h := range holds {
		guards[i] = h.guard()
	}
	return guards
}

func (h *holding) guard() types.TransactWriteItem {
	return h.proto.Guard(protocol.Hold{
		Key: protocol.Key(h.key), Owner: h.owner, Grants: []string{h.grant}, Token: h.token,
	}).TransactItem(h.c.cfg.Table)
}

// GuardError tells the lock how a transaction of yours ended whose item i was
// its Guard, or one of its Guards: call it for each of those. If item i is what
// failed it returns a *LostError wrapping err and the lock's context ends, or
// those of all locks if it was their shared lease; else it returns err.
func (l *Lock) GuardError(err error, i int) error {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || i < 0 || i >= len(cancelled.CancellationReasons) {
		return err
	}
	reason := cancelled.CancellationReasons[i]
	if aws.ToString(reason.Code) != "ConditionalCheckFailed" {
		return err
	}
	h, why := l.h, errors.Join(l.h.endedOtherwise(), err)
	switch item := reason.Item; {
	case item == nil, h.isOwnRow(&h.c.cfg.Table, item):
		return h.guardFailed(item, why)
	case h.session != nil && h.session.row.isOwnRow(&h.c.cfg.Table, item):
		return h.sessionFailed(h.session.row.guardFailed(item, err), why)
	}
	return err // of something else: whatever failed, it was not this lock's guard
}

// sessionFailed ends the trust because the guard of the session did not hold,
// which has ended, and says so.
func (h *holding) sessionFailed(session *LostError, err error) *LostError {
	lost := h.lostError(session.Reason, nil, err)
	h.loseWith(lost)
	return lost
}

// guardFailed ends the trust because the guard did not hold of item, and says
// so.
func (h *holding) guardFailed(item protocol.Item, err error) *LostError {
	lost := h.guardLoss(item, err)
	h.loseWith(lost)
	return lost
}

// guardLoss says how the grant was lost of whose record, item, the guard did
// not hold. A guard that failed fails for ever: no grant comes back.
func (h *holding) guardLoss(item protocol.Item, err error) *LostError {
	reason, by, damage := h.gone(item)
	if reason == "" { // our grant, under a version that is not ours: it was resumed elsewhere
		reason = LostReplaced
	}
	return h.lostError(reason, by, errors.Join(damage, err))
}

// endedOtherwise is why the grant was given up here, nil if it was not.
func (h *holding) endedOtherwise() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.cause, ErrLost) {
		return nil
	}
	return h.cause
}

// gone says how a record shows that the grant has ended, "" if it stands. A
// nil item is none.
func (h *holding) gone(item protocol.Item) (reason LostReason, by *Record, damage error) {
	if item == nil {
		return LostBroken, nil, nil
	}
	r, err := h.decode(item)
	if err != nil {
		return LostBroken, nil, err
	}
	freed := r.Released && r.Grant == "" // by a peer, or in a layout whose free records name nobody
	switch {
	case !freed && (r.Grant != h.grant || r.Owner != h.owner):
		return LostReplaced, &r, nil
	case r.Released || r.Token != h.token: // or broken, and granted again by a late duplicate of its request
		return LostBroken, &r, nil
	}
	return "", &r, nil
}

// checkWrites refuses what can never be committed beside the guards of holds.
func (c *Client) checkWrites(holds []*holding, writes []types.TransactWriteItem) error {
	rows := guarded(holds)
	switch most := maxTransact - len(rows); {
	case most < 0:
		return fmt.Errorf("leasehold: commit %v: %d guards alone: a transaction takes %d items: commit under fewer locks at once",
			holds[0].key, len(rows), maxTransact)
	case len(writes) > most:
		return fmt.Errorf("leasehold: commit %v: %d writes: at most %d beside %s: split them, or write one item that refers to the rest",
			holds[0].key, len(writes), most, nameGuards(len(holds), len(rows)))
	}
	for i, w := range writes {
		table, item, n := target(w)
		if n != 1 {
			return fmt.Errorf("leasehold: commit %v: write %d has %d operations: give each exactly one of ConditionCheck, Put, Update and Delete",
				holds[0].key, i, n)
		}
		for _, h := range rows {
			switch {
			case !h.isOwnRow(table, item):
			case h.heads != nil:
				return fmt.Errorf("leasehold: commit %v: write %d is to the row of this client's shared lease in table %s, which nobody else may write",
					holds[0].key, i, c.cfg.Table)
			default:
				return fmt.Errorf("leasehold: commit %v: write %d is to the lock's own record in table %s: change that with Renew, or with options of CommitAndRelease",
					h.key, i, c.cfg.Table)
			}
		}
	}
	return nil
}

// nameGuards says what guards there are of so many locks.
func nameGuards(locks, guards int) string {
	switch {
	case guards > locks:
		return fmt.Sprintf("%d guards, which are one for each lock and one for their shared lease", guards)
	case guards > 1:
		return fmt.Sprintf("%d guards", guards)
	}
	return "the guard"
}

// target returns the table of a write, the item or key it names and how many
// operations it has.
func target(w types.TransactWriteItem) (table *string, item protocol.Item, operations int) {
	if w.ConditionCheck != nil {
		table, item = w.ConditionCheck.TableName, w.ConditionCheck.Key
		operations++
	}
	if w.Put != nil {
		table, item = w.Put.TableName, w.Put.Item
		operations++
	}
	if w.Update != nil {
		table, item = w.Update.TableName, w.Update.Key
		operations++
	}
	if w.Delete != nil {
		table, item = w.Delete.TableName, w.Delete.Key
		operations++
	}
	return table, item, operations
}

// isOwnRow reports whether item, or a key, is the lock's own record. Two
// spellings of one number are left to DynamoDB, which refuses a second
// operation on one item.
func (h *holding) isOwnRow(table *string, item protocol.Item) bool {
	if !sameTable(aws.ToString(table), h.c.cfg.Table) {
		return false
	}
	own, err := h.c.proto.Key(protocol.Key(h.key))
	if err != nil {
		return false
	}
	schema := h.c.proto.Schema()
	for name := range own {
		if _, ok := item[name]; !ok {
			return false
		}
	}
	return schema.KeyOf(item) == schema.KeyOf(own)
}

// sameTable compares two names of tables, each of which may be an ARN. A name
// is taken to be of the same account and region.
func sameTable(a, b string) bool {
	if strings.HasPrefix(a, "arn:") && strings.HasPrefix(b, "arn:") {
		return a == b
	}
	return tableName(a) == tableName(b)
}

func tableName(s string) string {
	if _, name, ok := strings.Cut(s, ":table/"); ok && strings.HasPrefix(s, "arn:") {
		return name
	}
	return s
}
