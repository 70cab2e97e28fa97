package records

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// attrLastBreak is a map attribute that describes the last break of the lock by an
// operator. Grants do not change the map. So the former holder can read that its grant was
// broken, even after another client has acquired the key. The map names the broken grant by
// its token.
const attrLastBreak = "lastBreak"

// Attributes in the lastBreak map.
const (
	attrBrokenBy     = "by"
	attrAt           = "at" // epoch milliseconds by the clock of the client that wrote the map
	attrBrokenReason = "reason"
)

// setBroken adds to w a lastBreak map for the break b of the grant in record r. It does
// nothing if b does not name the client that broke the lock.
func setBroken(w *protocol.Write, r protocol.Record, b protocol.Break) {
	if b.By == "" {
		return
	}
	m := protocol.Item{attrBrokenBy: text(b.By), attrAt: number(b.At.UnixMilli())}
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
	b := protocol.Broken{By: d.text(attrBrokenBy), At: d.time(attrAt, time.UnixMilli), Token: d.token()}
	if d.has(attrBrokenReason) {
		b.Reason = d.text(attrBrokenReason)
	}
	if d.err != nil {
		return nil
	}
	return &b
}

// attrLastTakeover is a map attribute that describes the last takeover: the token and the
// owner of the dead holder's grant, and the time of the takeover. Only a takeover writes
// the map. If the record's GrantedAt is later than the time in the map, the current grant
// is not that takeover.
const attrLastTakeover = "lastTakeover"

// attrTakenFrom is the dead holder's owner in the lastTakeover map. The map contains the
// time and the token under the same names as the lastBreak map.
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

// attrStepDown is a map attribute that describes the last request to a holder to step down.
// It contains the id of the holder's grant, the client that sent the request, and the time.
// Later grants do not change the map, and ignore it, as it contains another grant id.
const attrStepDown = "stepDown"

// attrAskedBy is the client that sent the request, in the stepDown map. The map contains
// the time under the same name as the lastBreak map.
const attrAskedBy = "by"

// Ask returns the write that asks the holder of h to step down. Its condition is that the
// grant of h is current. The write changes neither the version nor the lease, so that no
// renewal fails.
func (p native) Ask(h protocol.Hold, by string, at time.Time) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	w.Set(attrStepDown, &types.AttributeValueMemberM{Value: protocol.Item{
		attrGrant: text(h.Grants[0]), attrAskedBy: text(by), attrAt: number(at.UnixMilli()),
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
