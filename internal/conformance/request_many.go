package conformance

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Requests that concern several items.

// Query is a Query request for one page. It is strongly consistent unless Eventual is set.
type Query struct {
	Where    string
	Filter   string
	Project  string
	Names    Names
	Values   Item
	Limit    int32
	Start    Item
	Backward bool
	Select   types.Select
	Eventual bool
}

// Scan is a Scan request for one page. It is strongly consistent unless Eventual is set. The
// tests ignore the order of the items in the reply.
type Scan struct {
	Filter   string
	Project  string
	Names    Names
	Values   Item
	Limit    int32
	Start    Item
	Segment  *int32
	Segments *int32
	Select   types.Select
	Eventual bool
}

// BatchGet is a strongly consistent BatchGetItem request. The tests ignore the order of the
// items in the reply.
type BatchGet struct {
	Keys    []Item
	Project string
	Names   Names
}

// BatchWrite is a BatchWriteItem request.
type BatchWrite struct {
	Put    []Item
	Delete []Item
}

func (r Query) send(ctx context.Context, to target) (Reply, error) {
	out, err := to.client.Query(ctx, &dynamodb.QueryInput{
		TableName:                 &to.table,
		ConsistentRead:            aws.Bool(!r.Eventual),
		KeyConditionExpression:    optional(r.Where),
		FilterExpression:          optional(r.Filter),
		ProjectionExpression:      optional(r.Project),
		ExpressionAttributeNames:  r.Names,
		ExpressionAttributeValues: r.Values,
		Limit:                     limit(r.Limit),
		ExclusiveStartKey:         r.Start,
		ScanIndexForward:          aws.Bool(!r.Backward),
		Select:                    r.Select,
		ReturnConsumedCapacity:    to.capacity,
	})
	if err != nil {
		return Reply{}, err
	}
	return page(out.Items, out.Count, out.ScannedCount, out.LastEvaluatedKey, out.ConsumedCapacity)
}

func (r Scan) send(ctx context.Context, to target) (Reply, error) {
	out, err := to.client.Scan(ctx, &dynamodb.ScanInput{
		TableName:                 &to.table,
		ConsistentRead:            aws.Bool(!r.Eventual),
		FilterExpression:          optional(r.Filter),
		ProjectionExpression:      optional(r.Project),
		ExpressionAttributeNames:  r.Names,
		ExpressionAttributeValues: r.Values,
		Limit:                     limit(r.Limit),
		ExclusiveStartKey:         r.Start,
		Segment:                   r.Segment,
		TotalSegments:             r.Segments,
		Select:                    r.Select,
		ReturnConsumedCapacity:    to.capacity,
	})
	if err != nil {
		return Reply{}, err
	}
	return page(inAnyOrder(out.Items), out.Count, out.ScannedCount, out.LastEvaluatedKey, out.ConsumedCapacity)
}

// page converts one page of a Query or Scan into a Reply. It sets Scanned only if a filter has
// dropped items. If items is nil, it sets Count. Otherwise, it returns an error if count differs
// from the number of items.
func page(items []Item, count, scanned int32, last Item, capacity *types.ConsumedCapacity) (Reply, error) {
	r := Reply{Items: items, Last: last, Capacity: units(capacity)}
	if scanned != count {
		r.Scanned = scanned
	}
	if items == nil {
		r.Count = count
	} else if int(count) != len(items) {
		return Reply{}, fmt.Errorf("the reply counts %d items and has %d", count, len(items))
	}
	return r, nil
}

func (r BatchGet) send(ctx context.Context, to target) (Reply, error) {
	out, err := to.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{to.table: {
			Keys:                     r.Keys,
			ConsistentRead:           aws.Bool(true),
			ProjectionExpression:     optional(r.Project),
			ExpressionAttributeNames: r.Names,
		}},
		ReturnConsumedCapacity: to.capacity,
	})
	if err != nil {
		return Reply{}, err
	}
	reply := Reply{Items: inAnyOrder(out.Responses[to.table]), Capacity: total(out.ConsumedCapacity)}
	if left := len(out.UnprocessedKeys[to.table].Keys); left > 0 {
		reply.Detail = fmt.Sprintf("%d unprocessed", left)
	}
	return reply, nil
}

func (r BatchWrite) send(ctx context.Context, to target) (Reply, error) {
	var writes []types.WriteRequest
	for _, item := range r.Put {
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
	}
	for _, key := range r.Delete {
		writes = append(writes, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}})
	}
	out, err := to.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
		RequestItems:           map[string][]types.WriteRequest{to.table: writes},
		ReturnConsumedCapacity: to.capacity,
	})
	if err != nil {
		return Reply{}, err
	}
	reply := Reply{Capacity: total(out.ConsumedCapacity)}
	if left := len(out.UnprocessedItems[to.table]); left > 0 {
		reply.Detail = fmt.Sprintf("%d unprocessed", left)
	}
	return reply, nil
}

func limit(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

func total(all []types.ConsumedCapacity) (sum float64) {
	for _, c := range all {
		sum += units(&c)
	}
	return sum
}
