package records

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// peers is the protocol of the layouts whose table other layouts write as well:
// what these leave, the layout's own library may not be able to read.
type peers struct {
	versioned
	reads func(lease string) bool // as the library does
}

// Foreign says what in an item the layout's library cannot live with; empty:
// nothing. A grant of ours writes all of it anew.
func (p peers) Foreign(item protocol.Item) string {
	lease, ok := item[p.lease].(*types.AttributeValueMemberS)
	switch {
	case ok && !p.reads(lease.Value):
		return p.lease + " is " + lease.Value
	case len(p.removed) > 0 && item[attrExpiresAt] != nil:
		return attrExpiresAt + " is there"
	}
	return ""
}

// isMillis reports whether the Java client can read a lease.
func isMillis(lease string) bool {
	_, err := strconv.ParseInt(lease, 10, 64)
	return err == nil
}

// isDuration reports whether dynamolock can.
func isDuration(lease string) bool {
	_, err := time.ParseDuration(lease)
	return err == nil
}
