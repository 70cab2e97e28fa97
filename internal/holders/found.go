package holders

import (
	"errors"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Kind is a kind of item in a lock table.
type Kind string

// Values of Kind.
const (
	KindLock    Kind = "lock"
	KindSession Kind = "session" // a row that is renewed for all locks of a client
	KindDamaged Kind = "damaged" // an item that is not a lock, and is of no known kind
)

// Found is one item of a lock table, decoded.
type Found struct {
	Key    protocol.Key
	Kind   Kind
	Record protocol.Record       // zero if the item is damaged
	Damage *protocol.DecodeError // error that says why the item cannot be decoded
}

// Held reports whether the record has a holder.
func (f Found) Held() bool { return f.Kind != KindDamaged && !f.Record.Released }

// Read decodes an item.
func Read(proto protocol.Protocol, item protocol.Item) Found {
	key := proto.Schema().KeyOf(item)
	if sharing, ok := proto.(protocol.Native); ok && sharing.IsSessionKey(key) {
		return foundIn(KindSession, key, sharing.Session(), item)
	}
	return foundIn(KindLock, key, proto, item)
}

// foundIn decodes an item with proto, and returns it as an item of the given kind.
func foundIn(kind Kind, key protocol.Key, proto protocol.Protocol, item protocol.Item) Found {
	f := Found{Key: key, Kind: kind}
	r, err := proto.Decode(item)
	if err != nil {
		f.Kind = KindDamaged
		if !errors.As(err, &f.Damage) {
			f.Damage = &protocol.DecodeError{Attribute: "item", Problem: err.Error()}
		}
		return f
	}
	f.Record = r
	return f
}
