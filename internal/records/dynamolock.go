package records

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

func newDynamolock(d layout.Dynamolock) (protocol.Protocol, error) {
	encode := func(d time.Duration) types.AttributeValue { return text(d.String()) }
	p, names := javaLike(d.Name(), d.PartitionKey, d.SortKey, d.SortValue, encode)
	return peers{lock{p}, p, isDuration}, errors.Join(names.errs...)
}
