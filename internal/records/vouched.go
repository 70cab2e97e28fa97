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

// attrLeaseEnds says when a lease ends by the wall clock of the client that has granted or
// renewed it, and of which version it is: that one alone. Clients that do not vouch for
// their clocks, older ones and other libraries renew a record and leave the attribute as it
// is. It then names a version that has gone for good, and says nothing.
const attrLeaseEnds = "leaseEnds"

// vouched returns the protocol of a client whose wall clock is wrong by skew at most. Rows of
// sessions are made from the same record.
func (p native) vouched(skew time.Duration) native {
	p.record.skew = skew
	return native{lock{p.record}, p.record}
}

// vouches reports whether a grant or a renewal says when its lease ends. One of more than
// a hundred years has no end that is worth saying.
func (p versioned) vouches(lease time.Duration) bool { return p.skew > 0 && lease <= longestLease }

// leaseEnds encodes the end of the lease that a version begins at now: eight bytes of epoch
// milliseconds, rounded up, and the version.
func leaseEnds(version string, now time.Time, lease time.Duration) types.AttributeValue {
	end := binary.BigEndian.AppendUint64(nil, uint64(endOf(now, lease, time.Millisecond)))
	return &types.AttributeValueMemberB{Value: slices.Concat(end, packed(version))}
}

// leaseEndsOf reads when the lease ends that a version has begun. Zero: an item does not say
// so, or says it of another version. It is never damage.
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
