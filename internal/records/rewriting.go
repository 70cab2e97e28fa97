package records

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// peers is the protocol of layouts AWSLabs and Dynamolock. A table may also contain records
// that were written in another layout, and that the library of this layout cannot read.
type peers struct {
	lock
	record versioned
	reads  func(lease string) bool // reports whether the layout's library can read a lease in this form
}

// Foreign describes the attribute of an item that prevents the layout's library from using
// the record: a lease that it cannot read, or an attribute expiresAt. It returns "" if
// there is no such attribute. Leasehold's next grant replaces or removes it.
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

// isMillis reports whether the awslabs Java client can read a lease: it must be an integer.
func isMillis(lease string) bool {
	_, err := strconv.ParseInt(lease, 10, 64)
	return err == nil
}

// isDuration reports whether dynamolock can read a lease: it must be a Go duration.
func isDuration(lease string) bool {
	_, err := time.ParseDuration(lease)
	return err == nil
}
