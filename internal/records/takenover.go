package records

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// attrLastTakeover is a map that says whose grant was taken over last. Only a grant that
// takes over writes it: its time is that of the grant, which tells whether another grant
// was made since.
const attrLastTakeover = "lastTakeover"

// attrTakenFrom is the owner in that map. The time and the token are as in lastBreak.
const attrTakenFrom = "from"

// setTakenOver stores whose grant g takes over, if it does.
func setTakenOver(w *protocol.Write, g protocol.Grant) {
	if len(g.Dead) == 0 {
		return
	}
	dead := g.Dead[0]
	m := protocol.Item{attrTakenFrom: text(dead.Owner), attrAt: number(g.Now.UnixMilli())}
	if dead.Token != 0 {
		m[attrToken] = number(dead.Token)
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
