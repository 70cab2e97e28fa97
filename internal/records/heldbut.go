package records

import (
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// HeldBut returns the holder of an item that reads as a held lock but for one attribute,
// which may be a user's own, or of a later format: somebody may work under that lock.
// Rows of leasehold's own other kinds are no locks, whichever layout of their table reads
// them: whoever renames their attribute takes them from those who use them.
func HeldBut(p protocol.Protocol, item protocol.Item, attribute string) (protocol.Record, bool) {
	if item[attribute] == nil {
		return protocol.Record{}, false
	}
	switch key := p.Schema().KeyOf(item); p.(type) {
	case native, peers:
		if isReadWrite(item) || isSession(item) && strings.HasPrefix(key.Partition, SessionPrefix) {
			return protocol.Record{}, false
		}
	}
	without := maps.Clone(item)
	delete(without, attribute)
	r, err := p.Decode(without)
	return r, err == nil && !r.Released
}

func isSession(item protocol.Item) bool {
	kind, ok := item[attrKind].(*types.AttributeValueMemberS)
	return ok && kind.Value == protocol.KindSession
}

// isReadWrite tells the row from a lock with a user's own attribute of that name and value.
func isReadWrite(item protocol.Item) bool {
	return protocol.IsReadWrite(item) && (item[attrReaders] != nil || item[attrWriter] != nil)
}
