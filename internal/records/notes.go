package records

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Attributes that several of the maps below contain. Some maps also contain a token (attrToken).
const (
	attrBy = "by" // owner of the client that wrote the map
	attrAt = "at" // epoch milliseconds by the clock of the client that wrote the map
)

// attrLastDone is a map attribute: the done mark. It names the work that a client last
// completed under the lock. Grants, renewals and breaks do not change the map. A release
// that marks work as done replaces the whole map.
const attrLastDone = "lastDone"

// Attributes in the lastDone map. The map contains either a label (in "once") or a period. The map
// also contains an owner, a time and a token, which are only for people.
const (
	attrOnce   = "once"
	attrPeriod = "period" // start of the period for which the work is done, in epoch milliseconds
)

// setDone makes w store the mark d. It does nothing if d is nil.
func setDone(w *protocol.Write, d *protocol.Done) {
	if d == nil {
		return
	}
	name, value := workOf(d.Once, d.Period)
	w.Set(attrLastDone, &types.AttributeValueMemberM{Value: protocol.Item{
		name: value, attrBy: text(d.Owner), attrAt: number(d.At.UnixMilli()), attrToken: number(d.Token),
	}})
}

// workOf returns the attribute that identifies the work in a done mark, as a name and a value. This
// is the label or, if the label is empty, the period.
func workOf(label string, period time.Time) (name string, value types.AttributeValue) {
	if label == "" {
		return attrPeriod, number(period.UnixMilli())
	}
	return attrOnce, text(label)
}

// whereUndone extends the condition of the grant w: the work o must not be marked as done. A mark
// that cannot be compared, for example because its period is a text, does not prevent the grant.
func whereUndone(w *protocol.Write, o protocol.Once) {
	if o.None() {
		return
	}
	is := " = "
	if o.Label == "" {
		is = " >= "
	}
	name, value := workOf(o.Label, o.Period)
	w.AndWhere("NOT " + w.Path(attrLastDone, name) + is + w.Value(value))
}

// doneOf returns the done mark in an item, or nil if the item has no mark. A lastDone map with only
// the name of the work is a mark too: whereUndone reads only that name.
func doneOf(item protocol.Item) *protocol.Done {
	d := mapOf(item, attrLastDone)
	if d == nil {
		return nil
	}
	d.lenient = true
	done := protocol.Done{Owner: d.text(attrBy), At: d.time(attrAt, time.UnixMilli), Token: d.token()}
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

// Unmark returns the write that removes the mark d from the record of key k, on the condition
// that the record still contains that mark.
func (p native) Unmark(k protocol.Key, d protocol.Done) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(k))
	w.Remove(attrLastDone)
	var condition string
	if d.Once != "" {
		condition = w.Path(attrLastDone, attrOnce) + " = " + w.Text(d.Once)
	} else {
		condition = isPeriod(w, d.Period.UnixMilli())
	}
	if d.Token != 0 {
		condition += " AND " + w.Path(attrLastDone, attrToken) + " = " + w.Value(number(d.Token))
	}
	w.Where(condition)
	return w
}

// isPeriod returns the condition that the record has a done mark whose period doneOf decodes to the
// given milliseconds since the epoch. It compares with a range, because doneOf rounds: a mark that
// was written by hand may have any number.
func isPeriod(w *protocol.Write, ms int64) string {
	period := w.Path(attrLastDone, attrPeriod)
	var conditions []string
	if ms > math.MinInt64 {
		conditions = append(conditions, period+" >= "+w.Value(number(ms)))
	}
	if ms < math.MaxInt64 {
		conditions = append(conditions, period+" < "+w.Value(number(ms+1)))
	}
	return strings.Join(conditions, " AND ")
}

// attrLastBreak is a map attribute that describes the last break by an operator, and names the
// broken grant by its token. Grants do not change it, so the former holder can read it even after
// another grant.
const attrLastBreak = "lastBreak"

// attrBrokenReason is the attribute of the lastBreak map with the reason for the break.
const attrBrokenReason = "reason"

// setBroken adds to w a lastBreak map for the break b of the grant in record r. It does
// nothing if b does not name the client that broke the lock.
func setBroken(w *protocol.Write, r protocol.Record, b protocol.Break) {
	if b.By == "" {
		return
	}
	m := protocol.Item{attrBy: text(b.By), attrAt: number(b.At.UnixMilli())}
	if b.Reason != "" {
		m[attrBrokenReason] = text(b.Reason)
	}
	if r.Token != 0 {
		m[attrToken] = number(r.Token)
	}
	w.Set(attrLastBreak, &types.AttributeValueMemberM{Value: m})
}

// brokenOf returns the content of the lastBreak map. It returns nil if the item has no such
// map, or if the map is damaged. The map is only for people, so damage in it is not an
// error.
func brokenOf(item protocol.Item) *protocol.Broken {
	d := mapOf(item, attrLastBreak)
	if d == nil {
		return nil
	}
	b := protocol.Broken{By: d.text(attrBy), At: d.time(attrAt, time.UnixMilli), Token: d.token()}
	if d.has(attrBrokenReason) {
		b.Reason = d.text(attrBrokenReason)
	}
	if d.err != nil {
		return nil
	}
	return &b
}

// attrLastTakeover is a map attribute that describes the last takeover: its time, and the token and
// the owner of the dead holder's grant. Only takeovers change the map. If the record's GrantedAt is
// later than the last takeover, the current grant was not a takeover.
const attrLastTakeover = "lastTakeover"

// attrTakenFrom is the attribute of the lastTakeover map with the owner of the dead holder's grant.
const attrTakenFrom = "from"

// setTakenOver adds to w a lastTakeover map if g takes the key over from a dead holder.
func setTakenOver(w *protocol.Write, g protocol.Grant) {
	if g.Dead == nil {
		return
	}
	m := protocol.Item{attrTakenFrom: text(g.Dead.Owner), attrAt: number(g.Now.UnixMilli())}
	if g.Dead.Token != 0 {
		m[attrToken] = number(g.Dead.Token)
	}
	w.Set(attrLastTakeover, &types.AttributeValueMemberM{Value: m})
}

// takenOverOf returns the content of the lastTakeover map. It returns nil if the item has
// no such map, or if the map is damaged. The map is only for people, so damage in it is not
// an error.
func takenOverOf(item protocol.Item) *protocol.TakenOver {
	d := mapOf(item, attrLastTakeover)
	if d == nil {
		return nil
	}
	t := protocol.TakenOver{From: d.text(attrTakenFrom), At: d.time(attrAt, time.UnixMilli), Token: d.token()}
	if d.err != nil {
		return nil
	}
	return &t
}

// attrStepDown is a map attribute with the last request to step down: the id of the holder's grant,
// the requesting client, and the time. Later grants do not change it. Their holders ignore it, as
// it contains the id of an earlier grant.
const attrStepDown = "stepDown"

// Ask returns the write that asks the holder of h to step down. Its condition is that the
// grant of h is current. The write changes neither the version nor the lease, so that no
// renewal fails.
func (p native) Ask(h protocol.Hold, by string, at time.Time) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	w.Set(attrStepDown, &types.AttributeValueMemberM{Value: protocol.Item{
		attrGrant: text(h.Grants[0]), attrBy: text(by), attrAt: number(at.UnixMilli()),
	}})
	w.Where(p.isCurrent(w, h))
	return w
}

// askedOf returns the grant id in the stepDown map. It returns "" if the item has no such
// map, or if the map is damaged.
func askedOf(item protocol.Item) string {
	d := mapOf(item, attrStepDown)
	if d == nil {
		return ""
	}
	return d.text(attrGrant)
}

// attrLeaseEnds is the attribute with the end of the lease, by the holder's clock, and the version
// of the write that stored it. Clients with a bounded clock write the attribute, unless the lease
// exceeds longestLease. Other clients change only the record's version: then the end is out of
// date.
const attrLeaseEnds = "leaseEnds"

// leaseEnds returns the value of attrLeaseEnds for a lease that begins at the time "now", in a
// write with the given version. The value begins with eight bytes for the end of the lease, in
// epoch milliseconds, rounded up. The version follows.
func leaseEnds(version string, now time.Time, lease time.Duration) types.AttributeValue {
	end := binary.BigEndian.AppendUint64(nil, uint64(endOf(now, lease, time.Millisecond)))
	return &types.AttributeValueMemberB{Value: slices.Concat(end, packed(version))}
}

// leaseEndsOf returns the end of the lease from the item's attrLeaseEnds. It returns the zero
// time if the item has no such attribute, or if the attribute contains a version other than
// the given version. Neither case is an error.
func (p versioned) leaseEndsOf(item protocol.Item, version string) time.Time {
	const end = 8
	b, _ := item[attrLeaseEnds].(*types.AttributeValueMemberB)
	if p.skew == 0 || b == nil || len(b.Value) < end || !bytes.Equal(b.Value[end:], packed(version)) {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b.Value)))
}

// packed returns a version as bytes. If the version has leasehold's form, packed decodes its
// hexadecimal digits to 16 bytes. Otherwise the result is the text of the version.
func packed(version string) []byte {
	if b, err := hex.DecodeString(protocol.VersionHex(version)); err == nil && protocol.IsVersion(version) {
		return b
	}
	return []byte(version)
}
