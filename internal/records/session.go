package records

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// native is the protocol of layout Native. Its locks may share the lease of a session.
type native struct {
	lock
	record versioned
}

// SessionKey returns the key of the row of the session with the given id. In a table with a
// sort key, the row's sort key is "-".
func (p native) SessionKey(id string) protocol.Key {
	k := protocol.Key{Partition: protocol.SessionPrefix + id}
	if p.record.Sort != "" {
		k.Sort = "-"
	}
	return k
}

// Session returns the protocol of session rows. To the library of another layout, a session row
// looks like a held lock. While the session holds locks, the session's client renews the row, so
// a client of the other library does not take over the row.
func (p native) Session() protocol.Protocol {
	s := p.record
	s.kind, s.shares, s.handsOver = protocol.KindSession, false, false
	s.released = attrDead
	s.own = slices.Concat(s.own, []string{attrDead, attrBrokenGrants})
	return sessions{lock{s}}
}

// attrDead is the attribute that marks a session as dead. The session's own client sets it when
// it ends the session. Another client sets it before it takes over a lock of the session.
const attrDead = "dead"

// attrBrokenGrants is a map attribute of a session's row. It maps the id of each notice to the id
// of the grant that an operator has broken. A client that reads notices creates the row with an
// empty map. A late copy of a notice is harmless, because the grant that it names has ended.
const attrBrokenGrants = "brokenGrants"

// TellBroken returns the write that adds a notice to the brokenGrants map of a session's row. The
// parameter "word" is the id of the notice, and "grant" is the id of the broken grant.
func (p native) TellBroken(session, word, grant string) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(p.SessionKey(session)))
	w.SetPath(w.Path(attrBrokenGrants, word), w.Text(grant))
	w.Where("attribute_not_exists(" + w.Name(attrDead) + ") AND attribute_exists(" + w.Name(attrBrokenGrants) + ")")
	return w
}

// sessions is the protocol of session rows in a table of layout Native.
type sessions struct{ lock }

// Grant returns the write that creates a session's row. Its condition is that the row does
// not exist, as each session id is used only once.
func (p sessions) Grant(g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	p.setGrant(w, g)
	w.Set(attrBrokenGrants, &types.AttributeValueMemberM{Value: protocol.Item{}})
	w.Where(fmt.Sprintf("attribute_not_exists(%s)", w.Name(p.Schema().Partition)))
	return w
}

// Renew returns the write that renews a session's row and removes the notices that the
// session's client has read.
func (p sessions) Renew(h protocol.Hold, r protocol.Renewal) *protocol.Write {
	w := p.lock.Renew(h, r)
	for _, word := range r.Heard {
		w.RemovePath(w.Path(attrBrokenGrants, word))
	}
	return w
}

// Decode decodes a session's row. A damaged notice in the row is not an error.
func (p sessions) Decode(item protocol.Item) (protocol.Record, error) {
	r, err := p.lock.Decode(item)
	told, ok := item[attrBrokenGrants].(*types.AttributeValueMemberM)
	if err != nil || !ok || len(told.Value) == 0 {
		return r, err
	}
	r.BrokenGrants = make(map[string]string, len(told.Value))
	for word, v := range told.Value {
		grant, _ := v.(*types.AttributeValueMemberS)
		if grant == nil { // the notice was written by hand and contains no grant id
			grant = &types.AttributeValueMemberS{}
		}
		r.BrokenGrants[word] = grant.Value
	}
	return r, err
}
