package records

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Attributes that our grants write in every layout, beside the peer's own. They
// identify a grant, so that fenced writes can be checked against the record.
const (
	attrGrant     = "grantId"
	attrToken     = "fencingToken"
	attrGrantedAt = "grantedAt"
)

// Attributes of other kinds of rows, and of later formats. A row with a kind is
// not a lock.
const (
	attrKind    = "kind"
	attrSession = "session"
	attrWaiters = "waiters"
)

// ours are the attributes that leasehold keeps for itself in every layout.
var ours = []string{
	attrGrant, attrToken, attrGrantedAt, attrKind, attrSession, attrWaiters,
	"dead", attrPermits, attrMost, attrReaders, attrTokens, attrWriter, attrIntent,
}

// reserved are the names that no caller may write in any layout: a fleet that
// goes from one layout to another must not find them taken.
var reserved = slices.Concat(ours, []string{
	attrOwner, attrLease, attrVersion, attrReleased, attrData, attrExpiresAt,
})

// maxToken leaves room for one more grant below 2^53-1, the largest integer
// that JSON readers with doubles keep exact (RFC 8259, section 6).
const maxToken = 1<<53 - 2

// setGrant writes what identifies a grant of ours.
func setGrant(w *protocol.Write, g protocol.Grant) {
	w.Set(attrGrant, text(g.Version))
	setToken(w, g)
}

// setToken writes the next token. One that was lost with its record restarts
// from the clock, above all that were ever given unless the clocks differ by
// more than the record was old.
func setToken(w *protocol.Write, g protocol.Grant) {
	w.SetTo(attrToken, fmt.Sprintf("if_not_exists(%s, %s) + %s",
		w.Name(attrToken), w.Value(number(g.Now.UnixMicro())), w.Value(number(1))))
}

// whereGrantable lets a grant take a record that is not there, or one that
// says it is free in one of the ways given, if nothing forbids it. A way that
// is empty is none.
func whereGrantable(w *protocol.Write, g protocol.Grant, partition string, free ...string) {
	ways := slices.DeleteFunc(free, func(way string) bool { return way == "" })
	if len(ways) == 0 {
		ways = []string{w.In(attrGrant, nil)} // none that there could be
	}
	take := "(" + strings.Join(ways, " OR ") + ")" + fmt.Sprintf(" AND attribute_not_exists(%s)"+
		// A delayed duplicate of this very request must not grant again.
		" AND (attribute_not_exists(%[2]s) OR %[2]s <> %[3]s)"+
		" AND (attribute_not_exists(%[4]s) OR %[5]s)",
		w.Name(attrKind), w.Name(attrGrant), w.Text(g.Version), w.Name(attrToken), tokenInRange(w))
	if g.IfExists {
		w.Where(take)
	} else {
		w.Where(fmt.Sprintf("attribute_not_exists(%s) OR (%s)", w.Name(partition), take))
	}
}

// tokenInRange is the condition that a grant can add one to the token.
func tokenInRange(w *protocol.Write) string {
	return fmt.Sprintf("%s BETWEEN %s AND %s", w.Name(attrToken), w.Value(number(0)), w.Value(number(maxToken)))
}

// isGrant is the condition that the record shows the grant of a hold, as far
// as our own attributes tell: a peer may have carried them into its own grant.
func isGrant(w *protocol.Write, h protocol.Hold) string {
	condition := w.In(attrGrant, h.Grants)
	if h.Token != 0 {
		condition += " AND " + w.Name(attrToken) + " = " + w.Value(number(h.Token))
	}
	return condition
}

// carryAttributes writes the caller's attributes.
func carryAttributes(w *protocol.Write, c protocol.Changes) {
	for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
		if v := c.Attributes[name]; v == nil {
			w.Remove(name)
		} else {
			w.Set(name, v)
		}
	}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func decimal(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

func number(n int64) types.AttributeValue { return decimal(strconv.FormatInt(n, 10)) }

// ceil is d in units of step, rounded up: a lease is never shorter than asked.
func ceil(d, step time.Duration) int64 {
	n := int64(d / step)
	if d%step > 0 {
		n++
	}
	return n
}

// forEver is the longest lease that a time can be reckoned from.
const forEver = 100 * 365 * 24 * time.Hour

// endOf is when a lease that begins now ends, in units of step since the epoch,
// rounded up.
func endOf(now time.Time, lease, step time.Duration) int64 {
	end := now.Add(min(lease, forEver))
	n := end.UnixMilli() / step.Milliseconds()
	if end.After(time.UnixMilli(n * step.Milliseconds())) {
		n++
	}
	return n
}
