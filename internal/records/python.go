package records

import (
	"cmp"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// pythonCollect is the time between the end of a lease and the TTL value of its record,
// after which DynamoDB may delete the record. python_dynamodb_lock uses one hour. If a
// holder's clock is slow by more than that, DynamoDB may delete a record that the holder
// still renews. An update expression cannot compute the later of two times. So leasehold
// uses a week instead, to allow for slow clocks.
const pythonCollect = 7 * 24 * time.Hour

// Attributes of a python_dynamodb_lock record.
const (
	pythonOwner   = "owner_name"
	pythonLease   = "lease_duration"
	pythonVersion = "record_version_number"
)

func newPython(l layout.PythonDynamoDBLock) (protocol.Protocol, error) {
	attributes := []string{pythonOwner, pythonLease, pythonVersion}
	p := versioned{
		schema: schema{
			Schema: protocol.Schema{
				Partition: cmp.Or(l.PartitionKey, "lock_key"),
				Sort:      cmp.Or(l.SortKey, "sort_key"),
				TTL:       cmp.Or(l.TTL, "expiry_time"),
			},
			sortValue: cmp.Or(l.SortValue, "-"),
		},
		owner: pythonOwner, lease: pythonLease, version: pythonVersion, own: attributes,
		encodeLease: func(d time.Duration) types.AttributeValue { return number(ceil(d, time.Second)) },
		decodeLease: (*decoder).seconds,
		collect:     pythonCollect,
	}
	n := newNames(l.Name(), append(attributes, ours...))
	n.claim("partition key", p.Partition)
	n.claim("sort key", p.Sort)
	n.claim("TTL attribute", p.TTL)
	return lock{p}, errors.Join(n.errs...)
}
