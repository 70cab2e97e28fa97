package records

import (
	"maps"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// HeldBut returns the holder of an item that reads as a held lock but for one attribute,
// which may be a user's own, or of a later format: somebody may work under that lock.
// Rows of leasehold's own other kinds are no locks.
func HeldBut(p protocol.Protocol, item protocol.Item, attribute string) (protocol.Record, bool) {
	if item[attribute] == nil {
		return protocol.Record{}, false
	}
	if own, ok := p.(native); ok && (protocol.IsReadWrite(item) || own.IsSessionKey(own.Schema().KeyOf(item))) {
		return protocol.Record{}, false
	}
	without := maps.Clone(item)
	delete(without, attribute)
	r, err := p.Decode(without)
	return r, err == nil && !r.Released
}
