package records

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// native is the protocol of Native, whose records may belong to a session.
type native struct {
	lock
	record versioned
}

// SessionPrefix is the prefix of the keys of session rows.
const SessionPrefix = "leasehold/session/"

// SessionKey returns the key of a session's row. In a table with a sort key, the
// sort key is "-".
func (p native) SessionKey(id string) protocol.Key {
	k := protocol.Key{Partition: SessionPrefix + id}
	if p.record.Sort != "" {
		k.Sort = "-"
	}
	return k
}

// IsSessionKey reports whether k is the key of a session's row.
func (p native) IsSessionKey(k protocol.Key) bool {
	id, ok := strings.CutPrefix(k.Partition, SessionPrefix)
	return ok && k == p.SessionKey(id)
}

// Session returns the protocol of session rows. A peer can list them like locks, but never
// takes one over: their version is renewed as long as the session holds a lock.
func (p native) Session() protocol.Protocol {
	s := p.record
	s.kind, s.shares, s.handsOver = protocol.KindSession, false, false
	s.released = attrDead
	s.own = slices.Concat(s.own, []string{attrDead, attrBrokenGrants})
	return sessions{lock{s}, s}
}

// attrDead is the mark of a session whose client has ended it.
const attrDead = "dead"

// attrBrokenGrants is a map in a session's row. It has one entry for each notice: the id of
// the notice, and the broken grant under the session. If the session's client reads
// notices, the row has the map from its creation. A broken grant is never granted again, so
// a late copy of a notice is harmless.
const attrBrokenGrants = "brokenGrants"

// TellBroken adds a notice to the brokenGrants map.
func (p native) TellBroken(session, word, grant string) *protocol.Write {
	s := p.Session().(sessions)
	w := protocol.NewUpdate(p.mustKey(p.SessionKey(session)))
	w.SetPath(w.Path(attrBrokenGrants, word), w.Text(grant))
	w.Where(s.record.unreleased(w) + "attribute_exists(" + w.Name(attrBrokenGrants) + ")")
	return w
}

type sessions struct {
	lock
	record versioned
}

// Grant creates a session's row. The row must not exist, as each id is used only once.
func (p sessions) Grant(g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	p.setGrant(w, g)
	w.Set(attrBrokenGrants, &types.AttributeValueMemberM{Value: protocol.Item{}})
	w.Where(fmt.Sprintf("attribute_not_exists(%s)", w.Name(p.record.Partition)))
	return w
}

// Renew renews the row, and removes the notices that have been read.
func (p sessions) Renew(h protocol.Hold, r protocol.Renewal) *protocol.Write {
	w := p.lock.Renew(h, r)
	for _, word := range r.Heard {
		w.RemovePath(w.Path(attrBrokenGrants, word))
	}
	return w
}

// Decode reads a row. A notice in the row that cannot be read does not count as damage.
func (p sessions) Decode(item protocol.Item) (protocol.Record, error) {
	r, err := p.lock.Decode(item)
	told, ok := item[attrBrokenGrants].(*types.AttributeValueMemberM)
	if err != nil || !ok || len(told.Value) == 0 {
		return r, err
	}
	r.BrokenGrants = make(map[string]string, len(told.Value))
	for word, v := range told.Value {
		grant, _ := v.(*types.AttributeValueMemberS)
		if grant == nil { // the notice was written by hand and names no grant
			grant = &types.AttributeValueMemberS{}
		}
		r.BrokenGrants[word] = grant.Value
	}
	return r, err
}
