package records

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// attrLastBreak is a map that describes the last break of a grant of the record. Grants do
// not change the map. So a holder learns that its grant was broken even after another
// client has been granted the key. The map names the broken grant by its token.
const attrLastBreak = "lastBreak"

// Attributes in the lastBreak map.
const (
	attrBrokenBy     = "by"
	attrAt           = "at" // epoch milliseconds by the clock of the client that wrote the map
	attrBrokenReason = "reason"
)

// setBroken describes the break of the grant of r, if b names its client.
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

// brokenOf reads the map that setBroken stored. It returns nil if the item has no readable
// map. The map is for people, so it never makes a record unreadable.
func brokenOf(item protocol.Item) *protocol.Broken {
	d := mapOf(item, attrLastBreak)
	b := protocol.Broken{By: d.text(attrBrokenBy), At: d.time(attrAt, time.UnixMilli), Token: d.token()}
	if d.has(attrBrokenReason) {
		b.Reason = d.text(attrBrokenReason)
	}
	if d.err != nil {
		return nil
	}
	return &b
}

// attrLastTakeover is a map that describes the last grant that was taken over. Only a
// takeover writes it. Its time is when that takeover's grant was made: a later GrantedAt
// means that another grant was made since.
const attrLastTakeover = "lastTakeover"

// attrTakenFrom is the owner in the lastTakeover map. The time and the token are as in
// lastBreak.
const attrTakenFrom = "from"

// setTakenOver describes the grant that g takes over, if there is one.
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

// takenOverOf reads the map that setTakenOver stored. It returns nil if the item has no
// readable map. The map is for people, so it never makes a record unreadable.
func takenOverOf(item protocol.Item) *protocol.TakenOver {
	d := mapOf(item, attrLastTakeover)
	t := protocol.TakenOver{From: d.text(attrTakenFrom), At: d.time(attrAt, time.UnixMilli), Token: d.token()}
	if d.err != nil {
		return nil
	}
	return &t
}

// attrStepDown is a map that describes the last request to step down: the grant, the client
// that asked, and the time. The map names the grant. So it does not concern later grants,
// and they do not change it.
const attrStepDown = "stepDown"

// attrAskedBy is the owner in the stepDown map. The time is as in lastBreak.
const attrAskedBy = "by"

// Ask asks the holder to step down if its grant is current. It changes neither version nor
// lease, so that no renewal fails.
func (p native) Ask(h protocol.Hold, by string, at time.Time) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	w.Set(attrStepDown, &types.AttributeValueMemberM{Value: protocol.Item{
		attrGrant: text(h.Grants[0]), attrAskedBy: text(by), attrAt: number(at.UnixMilli()),
	}})
	w.Where(p.stands(w, h))
	return w
}

// askedOf returns the grant that the stepDown map names, or "" if the item has no such map
// that can be read.
func askedOf(item protocol.Item) string { return mapOf(item, attrStepDown).text(attrGrant) }
