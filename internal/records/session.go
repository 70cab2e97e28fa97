package records

import (
	"fmt"
	"strings"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// native is the protocol of Native, whose records may belong to a session.
type native struct{ versioned }

// sessionPrefix is the prefix of the keys of session rows.
const sessionPrefix = "leasehold/session/"

// SessionKey returns the key of a session's row. In a table with a sort key, the
// sort key is "-".
func (p native) SessionKey(id string) protocol.Key {
	k := protocol.Key{Partition: sessionPrefix + id}
	if p.Sort != "" {
		k.Sort = "-"
	}
	return k
}

// IsSessionKey reports whether a key is that of a session's row.
func (p native) IsSessionKey(k protocol.Key) bool {
	id, ok := strings.CutPrefix(k.Partition, sessionPrefix)
	return ok && k == p.SessionKey(id)
}

// Session encodes session rows. A peer can list them like locks, but never takes
// one over: their version is renewed as long as the session holds a lock.
func (p native) Session() protocol.Protocol {
	s := p.versioned
	s.kind, s.shares = protocol.KindSession, false
	s.released = "dead"
	return sessions{s}
}

type sessions struct{ versioned }

// Grant creates a session's row. The row must not exist, as an id is used once.
func (p sessions) Grant(g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	p.setGrant(w, g)
	w.Where(fmt.Sprintf("attribute_not_exists(%s)", w.Name(p.Partition)))
	return w
}
