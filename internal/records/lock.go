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

// lock builds the writes of a plain lock's record. Each layout has its own attribute names
// and values, but each write does the same in all layouts. In this table, "the Hold" is the
// parameter that describes the holder's grant:
//
//	write     what it does to the record    condition
//	Grant     sets the grant and its lease  there is no record, or the record is free, shows a dead
//	                                        holder, or shows an earlier attempt by this client
//	HandOver  sets the grant and its lease  the record shows the grant and a version of the Hold
//	Renew     sets a version and the lease  the record shows the grant and a version of the Hold
//	Release   marks it free, or deletes it  the record shows the grant and a version of the Hold
//	Delete    deletes it                    the record shows the grant and a version of the Hold
//	Guard     changes nothing               the record shows the grant of the Hold, whatever its version
//	Break     marks it free, or deletes it  the record has not changed since it was read
type lock struct{ spelling }

// spelling encodes and decodes the record of a plain lock for several similar layouts. The
// methods setGrant, setRenewal and setRelease add attributes to the update w. The methods that
// return strings return conditions, which the caller combines into the condition of w.
type spelling interface {
	protocol.Reading
	mustKey(k protocol.Key) protocol.Item

	// keeps reports whether a release keeps the record, so that clients can still read the
	// token and the last holder. If it returns false, a release deletes the record.
	keeps() bool

	setGrant(w *protocol.Write, g protocol.Grant)
	setRenewal(w *protocol.Write, h protocol.Hold, r protocol.Renewal)
	setRelease(w *protocol.Write, r protocol.Release) // called only if keeps returns true

	// grantable returns conditions on a record. If one of them is true, DynamoDB may apply the
	// grant g. The result may be empty.
	grantable(w *protocol.Write, g protocol.Grant) []string

	// held returns the condition that the record shows the grant of h and one of the versions in h.
	// The condition of isCurrent, by contrast, is only that the grant of h has not ended.
	held(w *protocol.Write, h protocol.Hold) string
	isCurrent(w *protocol.Write, h protocol.Hold) string

	// isRecord returns the condition that the record has not changed since it was decoded as
	// r.
	isRecord(w *protocol.Write, r protocol.Record) string
}

func (l lock) Grant(g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(l.mustKey(g.Key))
	l.setGrant(w, g)
	free := l.grantable(w, g)
	if l.keeps() {
		setTakenOver(w, g)
	}
	whereGrantable(w, g, l.Schema().Partition, free...)
	whereUndone(w, g.Once)
	return w
}

func (l lock) HandOver(h protocol.Hold, g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(l.mustKey(g.Key))
	l.setGrant(w, g)
	w.Where(l.held(w, h) + " AND " + tokenInRange(w))
	return w
}

func (l lock) Renew(h protocol.Hold, r protocol.Renewal) *protocol.Write {
	w := protocol.NewUpdate(l.mustKey(h.Key))
	l.setRenewal(w, h, r)
	w.Where(l.held(w, h))
	return w
}

func (l lock) Release(h protocol.Hold, r protocol.Release) *protocol.Write {
	if !l.keeps() {
		return l.Delete(h)
	}
	w := protocol.NewUpdate(l.mustKey(h.Key))
	l.setRelease(w, r)
	setDone(w, r.Done)
	w.Where(l.held(w, h))
	return w
}

func (l lock) Delete(h protocol.Hold) *protocol.Write {
	w := protocol.NewDelete(l.mustKey(h.Key))
	w.Where(l.held(w, h))
	return w
}

func (l lock) Guard(h protocol.Hold) *protocol.Write {
	w := protocol.NewCheck(l.mustKey(h.Key))
	w.Where(l.isCurrent(w, h))
	return w
}

func (l lock) Break(r protocol.Record, b protocol.Break) *protocol.Write {
	w := protocol.NewDelete(l.mustKey(r.Key))
	if l.keeps() {
		w = protocol.NewUpdate(l.mustKey(r.Key))
		l.setRelease(w, protocol.Release{Version: b.Version, Expires: b.Expires})
		setBroken(w, r, b)
	}
	w.Where(l.isRecord(w, r))
	return w
}

// Attributes that identify a grant made by leasehold, so that fenced writes can check for this
// grant. Every grant writes the first two attributes, in every layout, in addition to the
// attributes of the layout's own library.
const (
	attrGrant     = "grantId"
	attrToken     = "fencingToken"
	attrGrantedAt = "grantedAt"
)

// attrKind marks rows that are not plain locks, such as session rows. A later version of leasehold
// may add more kinds. attrSession contains the id of the session whose lease the grant shares.
const (
	attrKind    = "kind"
	attrSession = "session"
)

// Names of the attributes that leasehold has added to the attributes of the layouts' own
// libraries.
var (
	oursInAll     = []string{attrGrant, attrToken, attrGrantedAt, attrKind, attrLastBreak, attrLastTakeover}
	oursInNative  = []string{attrSession, attrLeaseEnds, attrWaiters, attrHanded, attrNoQueueUntil, attrLastDone, attrStepDown}
	oursElsewhere = []string{attrDead, attrBrokenGrants} // attributes of session rows
)

// ours are the names of all attributes that leasehold has added. Callers may not use them
// in any layout, because a record may move to another layout.
var ours = slices.Concat(oursInAll, oursInNative, oursElsewhere)

// reserved are the attribute names that callers may not use in any layout. Otherwise a client
// with the wrong layout could, for example, take a caller's attribute for the mark of a
// released record.
var reserved = slices.Concat(ours, javaAttributes)

// setIDAndToken adds the grant id and the next token to w. If the record has no token, the next
// token comes from this client's clock. It then exceeds the tokens of a deleted record, unless this
// clock is behind the first holder's clock by at least the time since the first grant.
func setIDAndToken(w *protocol.Write, g protocol.Grant) {
	w.Set(attrGrant, text(cmp.Or(g.ID, g.Version)))
	w.SetTo(attrToken, "if_not_exists("+w.Name(attrToken)+", "+w.Value(number(firstToken(g.Now)-1))+") + "+w.Value(one))
}

// firstToken returns the token for the first grant of a record without a token: the
// microseconds since the epoch. The result is in the range from 1 to protocol.MaxToken,
// whatever the clock shows.
func firstToken(now time.Time) int64 { return min(max(now.UnixMicro(), 0), protocol.MaxToken-1) + 1 }

// Grantable returns protocol.ErrLastToken if the record's token is protocol.MaxToken. If one
// more grant wrote a higher token, no client could decode the record.
func (s schema) Grantable(item protocol.Item) error {
	d := decoder{item: item, lenient: true}
	if d.token() >= protocol.MaxToken {
		return protocol.ErrLastToken
	}
	return nil
}

// whereGrantable sets the condition of the grant w. DynamoDB applies the grant in two cases:
//
//   - The key has no record, and g.IfExists is false.
//   - The key has the record of a plain lock, one of the conditions in the list "free" is true,
//     and the token is below protocol.MaxToken.
func whereGrantable(w *protocol.Write, g protocol.Grant, partition string, free ...string) {
	if len(free) == 0 {
		free = []string{w.In(attrGrant, nil)} // a condition that is never true
	}
	kind, grant, token := w.Name(attrKind), w.Name(attrGrant), w.Name(attrToken)
	take := "(" + strings.Join(free, " OR ") + ") AND attribute_not_exists(" + kind + ")" +
		// DynamoDB must reject a second copy of this request that the network delivers late.
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

// isGrant returns the condition that the record contains the grant id and the token of h. That
// does not prove that the grant of h is current, as a later grant by another library may have
// kept these attributes.
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

// ceil returns d as a number of steps. It rounds up, because a lease must not become shorter.
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

// endOf returns the time now + lease as the number of steps since the epoch, rounded up.
func endOf(now time.Time, lease, step time.Duration) int64 {
	end := now.Add(min(lease, longestLease))
	n := end.UnixMilli() / step.Milliseconds()
	if end.After(time.UnixMilli(n * step.Milliseconds())) {
		n++
	}
	return n
}
