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

// Attributes that a grant by leasehold writes in every layout, in addition to the
// layout's own. They identify a grant, so that fenced writes can check it.
const (
	attrGrant     = "grantId"
	attrToken     = "fencingToken"
	attrGrantedAt = "grantedAt"
)

// Attributes of other kinds of rows, and of later formats. A row that has a kind
// is not a plain lock.
const (
	attrKind    = "kind"
	attrSession = "session"
)

// Leasehold's own attributes, by the records that use them.
var (
	oursInAll     = []string{attrGrant, attrToken, attrGrantedAt, attrKind, attrLastBreak, attrLastTakeover}
	oursInNative  = []string{attrSession, attrLeaseEnds, attrWaiters, attrHanded, attrNoQueueUntil, attrLastDone, attrStepDown}
	oursElsewhere = []string{attrDead, attrBrokenGrants} // in rows that are not locks
)

// ours are the attributes of leasehold that callers may not use in any layout, because a
// record may move to another layout.
var ours = slices.Concat(oursInAll, oursInNative, oursElsewhere)

// reserved are the attribute names that callers may not use in any layout: a client that is
// configured with the wrong layout must not read a caller's attribute as a release.
var reserved = slices.Concat(ours, []string{
	attrOwner, attrLease, attrVersion, attrReleased, attrData,
})

// setGrant sets the attributes that identify a grant by leasehold: its id and the next
// token. If the token was deleted with its record, tokens start again from the clock. The
// new token is then higher than all earlier ones, unless the clocks of two clients differ by
// more than the age of the record.
func setGrant(w *protocol.Write, g protocol.Grant) {
	w.Set(attrGrant, text(cmp.Or(g.ID, g.Version)))
	w.SetTo(attrToken, "if_not_exists("+w.Name(attrToken)+", "+w.Value(number(firstToken(g.Now)-1))+") + "+w.Value(one))
}

// firstToken returns the first token of a record that has none. The token is valid whatever
// the clock shows.
func firstToken(now time.Time) int64 { return min(max(now.UnixMicro(), 0), protocol.MaxToken-1) + 1 }

// Grantable returns protocol.ErrLastToken if the record has the last token. A grant whose
// token is above protocol.MaxToken would make a record that no client can read.
func (s schema) Grantable(item protocol.Item) error {
	d := decoder{item: item, lenient: true}
	if d.token() >= protocol.MaxToken {
		return protocol.ErrLastToken
	}
	return nil
}

// whereGrantable sets the condition of a grant: there is no record, or one of the
// conditions in free holds and nothing forbids the grant. Empty conditions are
// ignored.
func whereGrantable(w *protocol.Write, g protocol.Grant, partition string, free ...string) {
	free = slices.DeleteFunc(free, func(condition string) bool { return condition == "" })
	if len(free) == 0 {
		free = []string{w.In(attrGrant, nil)} // a condition that never holds
	}
	kind, grant, token := w.Name(attrKind), w.Name(attrGrant), w.Name(attrToken)
	take := "(" + strings.Join(free, " OR ") + ") AND attribute_not_exists(" + kind + ")" +
		// A delayed duplicate of this request must not grant again.
		" AND (attribute_not_exists(" + grant + ") OR " + grant + " <> " + w.Text(g.Version) + ")" +
		" AND (attribute_not_exists(" + token + ") OR " + tokenInRange(w) + ")"
	if g.IfExists {
		w.Where(take)
	} else {
		w.Where("attribute_not_exists(" + w.Name(partition) + ") OR (" + take + ")")
	}
}

// tokenInRange returns the condition that the token can be increased by one.
func tokenInRange(w *protocol.Write) string {
	return w.Name(attrToken) + " BETWEEN " + w.Value(zero) + " AND " + w.Value(highest)
}

// Numbers in the expressions of grants.
var zero, one, highest = number(0), number(1), number(protocol.MaxToken - 1)

// isGrant returns the condition that the record shows the grant of a hold. It
// checks only leasehold's attributes, which a peer's grant may have kept.
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

// longestLease is the longest lease that is added to a time: a longer one could
// overflow.
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
