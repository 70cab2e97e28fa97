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
