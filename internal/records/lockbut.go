package records

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// LockBut decodes an item as a lock, as if it did not have the given attribute, which
// cannot be read. It ignores more attributes with leasehold's names if they cannot be read
// either. LockBut returns the record, held or free, and true if the item is a lock apart
// from these attributes. The attribute may be a user's, or one of a later version of
// leasehold. Such an item must not be deleted: a client may hold the lock, and the
// remaining attributes may be the user's data.
//
// LockBut returns false for leasehold's rows that are not locks, even if p is another
// layout of the same table. Callers advise the user to rename the attribute. If the user
// did so in such a row, the clients that use the row would no longer find it.
func LockBut(p protocol.Protocol, item protocol.Item, attribute string) (protocol.Record, bool) {
	switch key := p.Schema().KeyOf(item); p.(type) {
	case native, peers:
		if strings.HasPrefix(key.Partition, SessionPrefix) {
			return protocol.Record{}, false
		}
	}
	without := maps.Clone(item)
	for {
		delete(without, attribute)
		r, err := p.Decode(without)
		var next *protocol.DecodeError
		if !errors.As(err, &next) || without[next.Attribute] == nil || !slices.Contains(ours, next.Attribute) {
			return r, err == nil
		}
		attribute = next.Attribute
	}
}
