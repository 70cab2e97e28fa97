package records

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

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
