package records

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// LockBut reads an item as a lock without the given attribute. It returns the record, held
// or free, and true if that succeeds. The attribute may be a user's own or of a later
// format. The item must not be deleted: a client may work under the lock, and the rest is
// the user's data. Other attributes with leasehold's names are left out, too, if they
// cannot be read. LockBut returns false for leasehold's rows that are not locks, even if p
// is another layout of the same table. Renaming an attribute of such a row would hide the
// row from the clients that use it, so no caller may advise it.
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
