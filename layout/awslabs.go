package layout

import (
	"cmp"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// AWSLabs is shared with awslabs/amazon-dynamodb-lock-client 1.x (Java). A Java
// client's grant carries no token, and may erase ours: it writes whole items,
// and deletes them by default on release. The attribute expiresAt, native's
// TTL, is removed by every grant of ours: it must not outlive a release.
type AWSLabs struct {
	PartitionKey string // default "key"
	SortKey      string // default none
	SortValue    string // sort key of a call that names none; default: such a call is an error
}

// Name returns "awslabs".
func (AWSLabs) Name() string { return "awslabs" }

// Capabilities says what grants and releases of either side leave.
func (a AWSLabs) Capabilities() Capabilities { return peerOfJava(a.SortKey) }

// Protocol is for package leasehold. The error lists the names that clash.
func (a AWSLabs) Protocol() (protocol.Protocol, error) {
	p, names := javaLike(a.Name(), a.PartitionKey, a.SortKey, a.SortValue, leaseMillis)
	return peers{p, isMillis}, errors.Join(names.errs...)
}

// peerOfJava are the capabilities of the layouts with the Java client's
// attributes that peers write too.
func peerOfJava(sortKey string) Capabilities {
	return Capabilities{
		Expiry:          Observed,
		Data:            true,
		Attributes:      true,
		KeepOnRelease:   true,
		DeleteOnRelease: true,
		SortKey:         sortKey != "",
		LeaseStep:       time.Millisecond,
	}
}

// javaLike is the protocol of the layouts with the Java client's attributes.
// They differ in how a lease is written; each reads every spelling.
func javaLike(layout, partition, sort, sortValue string, encodeLease func(time.Duration) types.AttributeValue) (versioned, *names) {
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
		// Left by a native client: the table's TTL may look at it, and would
		// delete a lock that is held.
		p.removed = []string{attrExpiresAt}
	}
	n := newNames(layout, append(attributes, ours...))
	n.claim("partition key", p.Partition)
	n.claim("sort key", sort)
	n.sortValue(sort, sortValue)
	return p, n
}

func leaseMillis(d time.Duration) types.AttributeValue {
	return text(number(ceil(d, time.Millisecond)).(*types.AttributeValueMemberN).Value)
}
