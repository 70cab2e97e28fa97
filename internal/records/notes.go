package records

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// attrLastBreak is a map that says who broke a grant of the record last. Grants leave
// it, so that a holder whose grant was broken can be told so even after the next one
// has been granted the key. It names the broken grant by its token.
const attrLastBreak = "lastBreak"

// Attributes in that map.
const (
	attrBrokenBy     = "by"
	attrAt           = "at" // epoch milliseconds by the clock of whoever wrote it
	attrBrokenReason = "reason"
)

// setBroken stores who breaks the grant of r, if b says so.
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

// brokenOf reads what setBroken stored. nil: nothing that reads as such. It is for
// people, so it never makes a record unreadable.
func brokenOf(item protocol.Item) *protocol.Broken {
	m, ok := item[attrLastBreak].(*types.AttributeValueMemberM)
	if !ok {
		return nil
	}
	d := decoder{item: m.Value}
	b := protocol.Broken{By: d.text(attrBrokenBy), At: d.time(attrAt, time.UnixMilli), Token: d.token()}
	if d.has(attrBrokenReason) {
		b.Reason = d.text(attrBrokenReason)
	}
	if d.err != nil {
		return nil
	}
	return &b
}

// attrLastTakeover is a map that says whose grant was taken over last. Only a grant that
// takes over writes it: its time is that of the grant, which tells whether another grant
// was made since.
const attrLastTakeover = "lastTakeover"

// attrTakenFrom is the owner in that map. The time and the token are as in lastBreak.
const attrTakenFrom = "from"

// setTakenOver stores whose grant g takes over, if it does.
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

// takenOverOf reads what setTakenOver stored. nil: nothing that reads as such. It is for
// people, so it never makes a record unreadable.
func takenOverOf(item protocol.Item) *protocol.TakenOver {
	m, ok := item[attrLastTakeover].(*types.AttributeValueMemberM)
	if !ok {
		return nil
	}
	d := decoder{item: m.Value}
	t := protocol.TakenOver{From: d.text(attrTakenFrom), At: d.time(attrAt, time.UnixMilli), Token: d.token()}
	if d.err != nil {
		return nil
	}
	return &t
}

// attrStepDown is a map that says whose holder was asked last to step down, who asked, and
// when. It names the grant, so a grant leaves it: it asks no other.
const attrStepDown = "stepDown"

// attrAskedBy is the owner in that map. The time is as in lastBreak.
const attrAskedBy = "by"

// Ask asks the holder to step down, if its grant stands. It changes neither version nor
// lease, so that no renewal fails.
func (p native) Ask(h protocol.Hold, by string, at time.Time) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	w.Set(attrStepDown, &types.AttributeValueMemberM{Value: protocol.Item{
		attrGrant: text(h.Grants[0]), attrAskedBy: text(by), attrAt: number(at.UnixMilli()),
	}})
	w.Where(p.stands(w, h))
	return w
}

// askedOf is the grant that the map names. What reads as none is none.
func askedOf(item protocol.Item) string {
	m, ok := item[attrStepDown].(*types.AttributeValueMemberM)
	if !ok {
		return ""
	}
	d := decoder{item: m.Value}
	return d.text(attrGrant)
}
