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

// javaLike returns the protocol of the layouts with the Java client's attributes. These
// layouts write the lease differently, but each can read all spellings.
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
		// A client with Native may have left expiresAt in the record. If expiresAt is the
		// table's TTL attribute, DynamoDB would delete a held lock.
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
