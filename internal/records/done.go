package records

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// attrLastDone is a map: the mark of what was done last. Grants, renewals and breaks leave
// it; the release after the work writes it whole, in the place of the last one.
const attrLastDone = "lastDone"

// Attributes in that map. There is either a label or a period. The owner, the time and the
// token are for people, as in lastBreak.
const (
	attrOnce   = "once"
	attrPeriod = "period" // its start, epoch milliseconds
	attrDoneBy = "by"
)

// setDone stores the mark; nil: none.
func setDone(w *protocol.Write, d *protocol.Done) {
	if d == nil {
		return
	}
	name, value := onceOf(protocol.Once{Label: d.Once, Period: d.Period})
	w.Set(attrLastDone, &types.AttributeValueMemberM{Value: protocol.Item{
		name: value, attrDoneBy: text(d.Owner), attrAt: number(d.At.UnixMilli()), attrToken: number(d.Token),
	}})
}

// onceOf is how a mark names what was done.
func onceOf(o protocol.Once) (name string, value types.AttributeValue) {
	if o.Label == "" {
		return attrPeriod, number(o.Period.UnixMilli())
	}
	return attrOnce, text(o.Label)
}

// whereUndone adds to the condition of a grant that what it is for is not done. What does
// not read as a mark is none: a comparison with it is false.
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

// doneOf reads a mark, of which whereUndone may have refused a grant: so whatever names
// what was done is one, whether or not it says by whom. nil: there is none.
func doneOf(item protocol.Item) *protocol.Done {
	m, ok := item[attrLastDone].(*types.AttributeValueMemberM)
	if !ok {
		return nil
	}
	d := decoder{item: m.Value, lenient: true}
	done := protocol.Done{Owner: d.text(attrDoneBy), At: d.time(attrAt, time.UnixMilli), Token: d.token()}
	if period, ok := d.floored(attrPeriod); ok {
		done.Period = time.UnixMilli(period).UTC()
	}
	if label, ok := m.Value[attrOnce].(*types.AttributeValueMemberS); ok {
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
