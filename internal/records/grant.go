package records

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Attributes that identify a grant by leasehold, so that fenced writes can check it. Grants
// write the first two in every layout, in addition to the attributes of the layout's own
// library.
const (
	attrGrant     = "grantId"
	attrToken     = "fencingToken"
	attrGrantedAt = "grantedAt"
)

// attrKind marks rows that are not plain locks, such as session rows. A later version of
// leasehold may add more kinds. attrSession contains the id of the session that shares its
// lease with a lock's grant.
const (
	attrKind    = "kind"
	attrSession = "session"
)

// Names of the attributes that leasehold has added to the attributes of the layouts' own
// libraries.
var (
	oursInAll     = []string{attrGrant, attrToken, attrGrantedAt, attrKind, attrLastBreak, attrLastTakeover}
	oursInNative  = []string{attrSession, attrLeaseEnds, attrWaiters, attrHanded, attrNoQueueUntil, attrLastDone, attrStepDown}
	oursElsewhere = []string{attrDead, attrBrokenGrants} // in session rows
)

// ours are the names of all attributes that leasehold has added. Callers may not use them
// in any layout, because a record may move to another layout.
var ours = slices.Concat(oursInAll, oursInNative, oursElsewhere)

// reserved are the attribute names that callers may not use in any layout. For example, a
// client that is configured with the wrong layout must not take a caller's attribute for
// the mark of a released record.
var reserved = slices.Concat(ours, []string{
	attrOwner, attrLease, attrVersion, attrReleased, attrData,
})

// setGrant adds to w the attributes that identify a grant by leasehold: its id and the next
// token. If the record has no token, for example because it was deleted, the token is
// computed from the clock. That token is higher than all earlier tokens of the key, if the
// clocks of clients differ by less than the age of the deleted record.
func setGrant(w *protocol.Write, g protocol.Grant) {
	w.Set(attrGrant, text(cmp.Or(g.ID, g.Version)))
	w.SetTo(attrToken, "if_not_exists("+w.Name(attrToken)+", "+w.Value(number(firstToken(g.Now)-1))+") + "+w.Value(one))
}

// firstToken returns the token for the first grant of a record without a token: the
// microseconds since the epoch. It is from 1 to protocol.MaxToken, whatever the clock
// shows.
func firstToken(now time.Time) int64 { return min(max(now.UnixMicro(), 0), protocol.MaxToken-1) + 1 }

// Grantable returns protocol.ErrLastToken if the record's token is protocol.MaxToken. One
// more grant would write a higher token, and no client could read the record.
func (s schema) Grantable(item protocol.Item) error {
	d := decoder{item: item, lenient: true}
	if d.token() >= protocol.MaxToken {
		return protocol.ErrLastToken
	}
	return nil
}

// whereGrantable sets the condition of w, a grant. The table must contain no record, or a
// plain lock for which one of the conditions in free is true. The record's token must be
// below the highest possible token. With g.IfExists, the record must exist. whereGrantable
// ignores empty strings in free.
func whereGrantable(w *protocol.Write, g protocol.Grant, partition string, free ...string) {
	free = slices.DeleteFunc(free, func(condition string) bool { return condition == "" })
	if len(free) == 0 {
		free = []string{w.In(attrGrant, nil)} // a condition that is never true
	}
	kind, grant, token := w.Name(attrKind), w.Name(attrGrant), w.Name(attrToken)
	take := "(" + strings.Join(free, " OR ") + ") AND attribute_not_exists(" + kind + ")" +
		// A delayed second copy of this request must not be applied.
		" AND (attribute_not_exists(" + grant + ") OR " + grant + " <> " + w.Text(g.Version) + ")" +
		" AND (attribute_not_exists(" + token + ") OR " + tokenInRange(w) + ")"
	if g.IfExists {
		w.Where(take)
	} else {
		w.Where("attribute_not_exists(" + w.Name(partition) + ") OR (" + take + ")")
	}
}

// tokenInRange returns the condition that the record's token can be increased by one.
func tokenInRange(w *protocol.Write) string {
	return w.Name(attrToken) + " BETWEEN " + w.Value(zero) + " AND " + w.Value(highest)
}

// Numbers in the expressions of grants.
var zero, one, highest = number(0), number(1), number(protocol.MaxToken - 1)

// isGrant returns the condition that the record contains the grant id and the token of h.
// That does not prove that h still holds the key, as a later grant by another library may
// have kept these attributes.
func isGrant(w *protocol.Write, h protocol.Hold) string {
	condition := w.In(attrGrant, h.Grants)
	if h.Token != 0 {
		condition += " AND " + w.Name(attrToken) + " = " + w.Value(number(h.Token))
	}
	return condition
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func decimal(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

func number(n int64) types.AttributeValue { return decimal(strconv.FormatInt(n, 10)) }

// ceil returns d in units of step. It rounds up, because a lease must not become shorter.
func ceil(d, step time.Duration) int64 {
	n := int64(d / step)
	if d%step > 0 {
		n++
	}
	return n
}

// longestLease is the longest lease that endOf adds to a time. The sum with a longer lease
// could overflow.
const longestLease = 100 * 365 * 24 * time.Hour

// endOf returns now + lease, in units of step since the epoch, rounded up.
func endOf(now time.Time, lease, step time.Duration) int64 {
	end := now.Add(min(lease, longestLease))
	n := end.UnixMilli() / step.Milliseconds()
	if end.After(time.UnixMilli(n * step.Milliseconds())) {
		n++
	}
	return n
}
