package records

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// attrLeaseEnds is the time when a lease ends, by the wall clock of the client that
// acquired or renewed it. The attribute contains the version that it describes. Clients
// without a bounded clock, older clients and other libraries renew a record and leave the
// attribute unchanged. The attribute then names a version that never comes back, and does
// not count.
const attrLeaseEnds = "leaseEnds"

// storesEnd reports whether a grant or a renewal stores when its lease ends. The end of a
// lease of more than a hundred years is not worth storing.
func (p versioned) storesEnd(lease time.Duration) bool { return p.skew > 0 && lease <= longestLease }

// leaseEnds encodes the end of the lease that a version begins at now: eight bytes of epoch
// milliseconds, rounded up, and the version.
func leaseEnds(version string, now time.Time, lease time.Duration) types.AttributeValue {
	end := binary.BigEndian.AppendUint64(nil, uint64(endOf(now, lease, time.Millisecond)))
	return &types.AttributeValueMemberB{Value: slices.Concat(end, packed(version))}
}

// leaseEndsOf returns the end of the lease that a version began. It returns the zero time
// if the item has no lease end, or only the end of another version's lease. Neither case
// counts as damage.
func (p versioned) leaseEndsOf(item protocol.Item, version string) time.Time {
	const end = 8
	b, _ := item[attrLeaseEnds].(*types.AttributeValueMemberB)
	if p.skew == 0 || b == nil || len(b.Value) < end || !bytes.Equal(b.Value[end:], packed(version)) {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b.Value)))
}

// packed returns a version in few bytes.
func packed(version string) []byte {
	if b, err := hex.DecodeString(protocol.VersionHex(version)); err == nil && protocol.IsVersion(version) {
		return b
	}
	return []byte(version)
}
