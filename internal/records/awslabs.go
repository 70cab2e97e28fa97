package records

import (
	"cmp"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

func newAWSLabs(a layout.AWSLabs) (protocol.Protocol, error) {
	p, names := javaLike(a.Name(), a.PartitionKey, a.SortKey, a.SortValue, leaseMillis)
	return peers{lock{p}, p, isMillis}, errors.Join(names.errs...)
}

// javaLike returns the protocol for layouts AWSLabs, Dynamolock and Native, which use the
// attribute names of the awslabs Java client. encodeLease is the form in which the layout
// writes a lease. Each of the three layouts can read the forms of the other two.
func javaLike(name, partition, sort, sortValue string, encodeLease func(time.Duration) types.AttributeValue) (versioned, *names) {
	attributes := []string{attrOwner, attrLease, attrVersion, attrReleased, attrData}
	p := versioned{
		schema: schema{
			Schema:    protocol.Schema{Partition: cmp.Or(partition, "key"), Sort: sort},
			sortValue: sortValue,
		},
		owner: attrOwner, lease: attrLease, version: attrVersion, released: attrReleased, data: attrData,
		own:         append(attributes, attrExpiresAt),
		encodeLease: encodeLease, decodeLease: (*decoder).lease,
	}
	if p.Partition != attrExpiresAt && p.Sort != attrExpiresAt {
		// A client with layout Native may have left the attribute expiresAt in the record. If
		// expiresAt is the table's TTL attribute, DynamoDB would delete the record of a held
		// lock.
		p.removed = []string{attrExpiresAt}
	}
	n := newNames(name, append(attributes, ours...))
	n.claim("partition key", p.Partition)
	n.claim("sort key", sort)
	n.sortValue(sort, sortValue)
	return p, n
}

func leaseMillis(d time.Duration) types.AttributeValue {
	return text(number(ceil(d, time.Millisecond)).(*types.AttributeValueMemberN).Value)
}
