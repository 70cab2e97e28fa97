package records

import (
	"fmt"
	"strings"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// native is the protocol of Native, whose records may belong to a session.
type native struct{ versioned }

// sessionPrefix begins the keys of session rows.
const sessionPrefix = "leasehold/session/"

// SessionKey is the key of a session's row; in a table with a sort key that is
// a dash.
func (p native) SessionKey(id string) protocol.Key {
	k := protocol.Key{Partition: sessionPrefix + id}
	if p.Sort != "" {
		k.Sort = "-"
	}
	return k
}

// IsSessionKey reports whether a key is one of SessionKey's.
func (p native) IsSessionKey(k protocol.Key) bool {
	id, ok := strings.CutPrefix(k.Partition, sessionPrefix)
	return ok && k == p.SessionKey(id)
}

// Session spells session rows. They read as records for a peer's listing, and
// as no lock for its grants: their version is renewed for as long as any lock
// of theirs is held.
func (p native) Session() protocol.Protocol {
	s := p.versioned
	s.kind, s.shares = protocol.KindSession, false
	s.released = "dead"
	return sessions{s}
}

type sessions struct{ versioned }

// Grant creates a row that was never there: an id is used once.
func (p sessions) Grant(g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	p.setGrant(w, g)
	w.Where(fmt.Sprintf("attribute_not_exists(%s)", w.Name(p.Partition)))
	return w
}
