package records

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// attrLastDone is a map attribute: the done mark. It names the work that a client last
// completed under the lock. Grants, renewals and breaks do not change the map. A release
// that marks work as done replaces the whole map.
const attrLastDone = "lastDone"

// Attributes in the lastDone map. The map contains either a label (once) or a period. The
// owner, the time and the token in it, as in the lastBreak map, are only for people.
const (
	attrOnce   = "once"
	attrPeriod = "period" // start of the period for which the work is done, in epoch milliseconds
	attrDoneBy = "by"
)

// setDone makes w store the mark d. It does nothing if d is nil.
func setDone(w *protocol.Write, d *protocol.Done) {
	if d == nil {
		return
	}
	name, value := onceOf(protocol.Once{Label: d.Once, Period: d.Period})
	w.Set(attrLastDone, &types.AttributeValueMemberM{Value: protocol.Item{
		name: value, attrDoneBy: text(d.Owner), attrAt: number(d.At.UnixMilli()), attrToken: number(d.Token),
	}})
}

// onceOf returns the name and the value of the attribute by which a mark names the work o:
// the label or the period.
func onceOf(o protocol.Once) (name string, value types.AttributeValue) {
	if o.Label == "" {
		return attrPeriod, number(o.Period.UnixMilli())
	}
	return attrOnce, text(o.Label)
}

// whereUndone adds to the condition of w, a grant, that the work o is not marked as done. A
// damaged mark does not prevent the grant: DynamoDB's comparison with a damaged attribute
// is false.
func whereUndone(w *protocol.Write, o protocol.Once) {
	if o.None() {
		return
	}
	is := " = "
	if o.Label == "" {
		is = " >= "
	}
	name, value := onceOf(o)
	w.AndWhere("NOT " + w.Path(attrLastDone, name) + is + w.Value(value))
}

// doneOf returns the mark in an item, or nil if the item has no mark. A lastDone map that
// names a work is a mark even without an owner, as whereUndone rejects grants because of
// such a map, too.
func doneOf(item protocol.Item) *protocol.Done {
	d := mapOf(item, attrLastDone)
	if d == nil {
		return nil
	}
	d.lenient = true
	done := protocol.Done{Owner: d.text(attrDoneBy), At: d.time(attrAt, time.UnixMilli), Token: d.token()}
	if period, ok := d.floored(attrPeriod); ok {
		done.Period = time.UnixMilli(period).UTC()
	}
	if label, ok := d.item[attrOnce].(*types.AttributeValueMemberS); ok {
		done.Once = label.Value
	}
	if done.Once == "" && done.Period.IsZero() {
		return nil
	}
	return &done
}

// Unmark returns the write that removes the mark d from the record of key k. Its condition
// is that the record still contains that mark.
func (p native) Unmark(k protocol.Key, d protocol.Done) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(k))
	w.Remove(attrLastDone)
	name, value := onceOf(protocol.Once{Label: d.Once, Period: d.Period})
	condition := w.Path(attrLastDone, name) + " = " + w.Value(value)
	if d.Token != 0 {
		condition += " AND " + w.Path(attrLastDone, attrToken) + " = " + w.Value(number(d.Token))
	}
	w.Where(condition)
	return w
}
