package cli

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// usage is what requests that were answered have used.
type usage struct {
	requests  int
	throttled int     // of the requests
	writes    float64 // capacity units
	reads     float64
}

func (u usage) plus(v usage) usage {
	return usage{u.requests + v.requests, u.throttled + v.throttled, u.writes + v.writes, u.reads + v.reads}
}

func (u usage) minus(v usage) usage {
	return usage{u.requests - v.requests, u.throttled - v.throttled, u.writes - v.writes, u.reads - v.reads}
}

// meter counts the requests of a DynamoDB client, and what they used. It is safe for
// concurrent use.
type meter struct {
	mu   sync.Mutex
	used usage
}

// metered returns the client with its requests counted.
func metered(db *dynamodb.Client) (*dynamodb.Client, *meter) {
	m := &meter{}
	count := middleware.InitializeMiddlewareFunc("CountUsage", m.count)
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clip(o.APIOptions), func(s *middleware.Stack) error { return s.Initialize.Add(count, middleware.After) })
	}), m
}

func (m *meter) count(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	in.Parameters = askingUnits(in.Parameters)
	out, md, err := next.HandleInitialize(ctx, in)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = m.used.plus(usedBy(out.Result, err))
	return out, md, err
}

// askingUnits returns a copy of the input of an operation that asks what it consumes.
// The input itself belongs to the caller of the SDK.
func askingUnits(input any) any {
	const total = types.ReturnConsumedCapacityTotal
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		asking := *in
		asking.ReturnConsumedCapacity = total
		return &asking
	case *dynamodb.BatchGetItemInput:
		asking := *in
		asking.ReturnConsumedCapacity = total
		return &asking
	case *dynamodb.QueryInput:
		asking := *in
		asking.ReturnConsumedCapacity = total
		return &asking
	case *dynamodb.ScanInput:
		asking := *in
		asking.ReturnConsumedCapacity = total
		return &asking
	case *dynamodb.UpdateItemInput:
		asking := *in
		asking.ReturnConsumedCapacity = total
		return &asking
	case *dynamodb.DeleteItemInput:
		asking := *in
		asking.ReturnConsumedCapacity = total
		return &asking
	case *dynamodb.PutItemInput:
		asking := *in
		asking.ReturnConsumedCapacity = total
		return &asking
	case *dynamodb.TransactWriteItemsInput:
		asking := *in
		asking.ReturnConsumedCapacity = total
		return &asking
	}
	return input
}

// usedBy returns what one request used, as its reply says. The server may not say it.
func usedBy(result any, err error) usage {
	var failed *types.ConditionalCheckFailedException
	var api smithy.APIError
	switch {
	case errors.As(err, &failed):
		return usage{requests: 1, writes: 1} // charged like one that was applied, though the reply does not say so
	case decide.Throttled(err):
		return usage{requests: 1, throttled: 1}
	case errors.As(err, &api):
		return usage{requests: 1}
	case err != nil: // not answered
		return usage{}
	}
	u := usage{requests: 1}
	switch o := result.(type) {
	case *dynamodb.GetItemOutput:
		u.reads = units(o.ConsumedCapacity)
	case *dynamodb.BatchGetItemOutput:
		for _, c := range o.ConsumedCapacity {
			u.reads += units(&c)
		}
	case *dynamodb.ScanOutput:
		u.reads = units(o.ConsumedCapacity)
	case *dynamodb.QueryOutput:
		u.reads = units(o.ConsumedCapacity)
	case *dynamodb.UpdateItemOutput:
		u.writes = units(o.ConsumedCapacity)
	case *dynamodb.DeleteItemOutput:
		u.writes = units(o.ConsumedCapacity)
	case *dynamodb.TransactWriteItemsOutput:
		for _, c := range o.ConsumedCapacity {
			u.writes += units(&c)
		}
	}
	return u
}

func units(c *types.ConsumedCapacity) float64 {
	if c == nil {
		return 0
	}
	return aws.ToFloat64(c.CapacityUnits)
}

// now returns what was used so far.
func (m *meter) now() usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// total returns the requests so far, and the read units that they used.
func (m *meter) total() (requests int, units float64) {
	used := m.now()
	return used.requests, used.reads
}
