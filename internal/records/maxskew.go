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

// attrLeaseEnds is the attribute with the time when the lease ends, by the wall clock of
// the client that acquired or renewed it. The attribute also contains the version of the
// record that this client wrote. Clients without a bounded clock, older clients and other
// libraries renew a record without changing the attribute. Readers then ignore the
// attribute, as it contains an old version.
const attrLeaseEnds = "leaseEnds"

// storesEnd reports whether a grant or a renewal stores when its lease ends. It returns
// true if the client's clock is bounded and the lease is at most longestLease.
func (p versioned) storesEnd(lease time.Duration) bool { return p.skew > 0 && lease <= longestLease }

// leaseEnds returns the value of attrLeaseEnds for a lease that begins at now, in a write
// with the given version. The value is the end of the lease in epoch milliseconds, rounded
// up, in eight bytes, and then the version.
func leaseEnds(version string, now time.Time, lease time.Duration) types.AttributeValue {
	end := binary.BigEndian.AppendUint64(nil, uint64(endOf(now, lease, time.Millisecond)))
	return &types.AttributeValueMemberB{Value: slices.Concat(end, packed(version))}
}

// leaseEndsOf returns the end of the lease from the item's attrLeaseEnds. It returns the
// zero time if the item has no such attribute, or if the attribute contains another version
// than the given one. Neither case is an error.
func (p versioned) leaseEndsOf(item protocol.Item, version string) time.Time {
	const end = 8
	b, _ := item[attrLeaseEnds].(*types.AttributeValueMemberB)
	if p.skew == 0 || b == nil || len(b.Value) < end || !bytes.Equal(b.Value[end:], packed(version)) {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b.Value)))
}

// packed returns the bytes of a version that has leasehold's form, instead of their
// hexadecimal digits. It returns any other version as it is.
func packed(version string) []byte {
	if b, err := hex.DecodeString(protocol.VersionHex(version)); err == nil && protocol.IsVersion(version) {
		return b
	}
	return []byte(version)
}
