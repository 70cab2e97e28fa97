package records

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// attrLastDone is a map that contains the mark of the last work that was done. Grants,
// renewals and breaks do not change the map. The release after the work replaces the whole
// map.
const attrLastDone = "lastDone"

// Attributes in the lastDone map. The map has either a label or a period. The owner, the
// time and the token are for people, as in lastBreak.
const (
	attrOnce   = "once"
	attrPeriod = "period" // start of the period, in epoch milliseconds
	attrDoneBy = "by"
)

// setDone stores the mark d. It does nothing if d is nil.
func setDone(w *protocol.Write, d *protocol.Done) {
	if d == nil {
		return
	}
	name, value := onceOf(protocol.Once{Label: d.Once, Period: d.Period})
	w.Set(attrLastDone, &types.AttributeValueMemberM{Value: protocol.Item{
		name: value, attrDoneBy: text(d.Owner), attrAt: number(d.At.UnixMilli()), attrToken: number(d.Token),
	}})
}

// onceOf returns the attribute by which a mark names its work.
func onceOf(o protocol.Once) (name string, value types.AttributeValue) {
	if o.Label == "" {
		return attrPeriod, number(o.Period.UnixMilli())
	}
	return attrOnce, text(o.Label)
}

// whereUndone adds to the condition of a grant that the grant's work is not done. An
// attribute that cannot be read as a mark does not count, because a comparison with it is
// false.
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

// doneOf reads a mark. It returns nil if there is none. whereUndone may have rejected a
// grant because of the map, so any map that names the work is a mark, even without an
// owner.
func doneOf(item protocol.Item) *protocol.Done {
	d := mapOf(item, attrLastDone)
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

// Unmark removes the mark d.
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
