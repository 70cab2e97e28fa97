package cli

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// meter counts the reads of a DynamoDB client: requests that were answered, and the
// read units that they used. It is safe for concurrent use.
type meter struct {
	mu       sync.Mutex
	requests int
	units    float64
}

// metered returns the client with its reads counted.
func metered(db *dynamodb.Client) (*dynamodb.Client, *meter) {
	m := &meter{}
	count := middleware.InitializeMiddlewareFunc("CountReads", m.count)
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error { return s.Initialize.Add(count, middleware.After) })
	}), m
}

func (m *meter) count(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (out middleware.InitializeOutput, md middleware.Metadata, err error) {
	const total = types.ReturnConsumedCapacityTotal
	switch p := in.Parameters.(type) {
	case *dynamodb.GetItemInput:
		p.ReturnConsumedCapacity = total
	case *dynamodb.BatchGetItemInput:
		p.ReturnConsumedCapacity = total
	case *dynamodb.ScanInput:
		p.ReturnConsumedCapacity = total
	case *dynamodb.QueryInput:
		p.ReturnConsumedCapacity = total
	}
	if out, md, err = next.HandleInitialize(ctx, in); err != nil {
		return out, md, err
	}
	switch o := out.Result.(type) {
	case *dynamodb.GetItemOutput:
		m.add(o.ConsumedCapacity)
	case *dynamodb.BatchGetItemOutput:
		m.addAll(o.ConsumedCapacity)
	case *dynamodb.ScanOutput:
		m.add(o.ConsumedCapacity)
	case *dynamodb.QueryOutput:
		m.add(o.ConsumedCapacity)
	}
	return out, md, nil
}

// add counts one request. The server may not say what it used.
func (m *meter) add(used *types.ConsumedCapacity) {
	if used == nil {
		m.addAll(nil)
		return
	}
	m.addAll([]types.ConsumedCapacity{*used})
}

func (m *meter) addAll(used []types.ConsumedCapacity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	for _, u := range used {
		if u.CapacityUnits != nil {
			m.units += *u.CapacityUnits
		}
	}
}

// total returns what was counted so far.
func (m *meter) total() (requests int, units float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests, m.units
}
