package records

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// peers is the protocol of a layout of a peer, for a table that may also contain records of
// other layouts. The peer's library may be unable to read such records.
type peers struct {
	lock
	record versioned
	reads  func(lease string) bool // reports whether the library can read a lease
}

// Foreign describes the part of an item that the layout's library cannot read or must not
// find. It returns "" if there is none. A grant by leasehold writes all of it anew.
func (p peers) Foreign(item protocol.Item) string {
	lease, ok := item[p.record.lease].(*types.AttributeValueMemberS)
	switch {
	case ok && !p.reads(lease.Value):
		return p.record.lease + " is " + lease.Value
	case len(p.record.removed) > 0 && item[attrExpiresAt] != nil:
		return attrExpiresAt + " is present"
	}
	return ""
}

// isMillis reports whether the Java client can read a lease.
func isMillis(lease string) bool {
	_, err := strconv.ParseInt(lease, 10, 64)
	return err == nil
}

// isDuration reports whether dynamolock can read a lease.
func isDuration(lease string) bool {
	_, err := time.ParseDuration(lease)
	return err == nil
}
