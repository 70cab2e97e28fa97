package holders

import (
	"errors"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Kind is the kind of an item in a lock table.
type Kind string

// Kinds of items.
const (
	KindLock    Kind = "lock"
	KindSession Kind = "session" // a row that a client renews instead of the record of each of its locks
	KindDamaged Kind = "damaged" // an item that cannot be decoded as a lock or a session
)

// Found is the result of decoding one item of a lock table.
type Found struct {
	Key    protocol.Key
	Kind   Kind
	Record protocol.Record       // zero if the item cannot be decoded
	Damage *protocol.DecodeError // why the item cannot be decoded; nil if it was decoded
}

// Held reports whether the item is a record that has a holder.
func (f Found) Held() bool { return f.Kind != KindDamaged && !f.Record.Released }

// Read decodes an item as a lock or a session, depending on its key.
func Read(proto protocol.Protocol, item protocol.Item) Found {
	key := proto.Schema().KeyOf(item)
	if protocol.IsSessionKey(proto, key) {
		return foundIn(KindSession, key, proto.(protocol.Native).Session(), item)
	}
	return foundIn(KindLock, key, proto, item)
}

// foundIn decodes an item with proto. The result has the given kind, or KindDamaged if proto
// cannot decode the item.
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
