package conformance

import (
	"context"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Requests for one item. If Key is nil, the request uses the key that most cases use. The field
// "If" contains a condition expression. The field "Do" contains an update expression, and the field
// "Project" contains a projection expression.

// Get is a GetItem request. It is strongly consistent unless Eventual is set.
type Get struct {
	Key      Item
	Project  string
	Names    Names
	Eventual bool
}

// Put is a PutItem request.
type Put struct {
	Item      Item
	If        string
	Names     Names
	Values    Item
	Return    types.ReturnValue
	OldIfFail bool // whether the request asks for the old item in the error of a failed condition
}

// Update is an UpdateItem request.
type Update struct {
	Key       Item
	Do        string
	If        string
	Names     Names
	Values    Item
	Return    types.ReturnValue
	OldIfFail bool
}

// Delete is a DeleteItem request.
type Delete struct {
	Key       Item
	If        string
	Names     Names
	Values    Item
	Return    types.ReturnValue
	OldIfFail bool
}

func (r Get) send(ctx context.Context, to target) (Reply, error) {
	out, err := to.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:                &to.table,
		Key:                      keyOr(r.Key),
		ConsistentRead:           aws.Bool(!r.Eventual),
		ProjectionExpression:     optional(r.Project),
		ExpressionAttributeNames: r.Names,
		ReturnConsumedCapacity:   to.capacity,
	})
	if err != nil {
		return Reply{}, err
	}
	return Reply{Item: out.Item, Capacity: units(out.ConsumedCapacity)}, nil
}

func (r Put) send(ctx context.Context, to target) (Reply, error) {
	out, err := to.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                           &to.table,
		Item:                                keyOr(r.Item),
		ConditionExpression:                 optional(r.If),
		ExpressionAttributeNames:            r.Names,
		ExpressionAttributeValues:           r.Values,
		ReturnValues:                        r.Return,
		ReturnValuesOnConditionCheckFailure: onFailure(r.OldIfFail),
		ReturnConsumedCapacity:              to.capacity,
	})
	if err != nil {
		return Reply{}, err
	}
	return Reply{Item: out.Attributes, Capacity: units(out.ConsumedCapacity)}, nil
}

func (r Update) send(ctx context.Context, to target) (Reply, error) {
	out, err := to.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           &to.table,
		Key:                                 keyOr(r.Key),
		UpdateExpression:                    optional(r.Do),
		ConditionExpression:                 optional(r.If),
		ExpressionAttributeNames:            r.Names,
		ExpressionAttributeValues:           r.Values,
		ReturnValues:                        r.Return,
		ReturnValuesOnConditionCheckFailure: onFailure(r.OldIfFail),
		ReturnConsumedCapacity:              to.capacity,
	})
	if err != nil {
		return Reply{}, err
	}
	return Reply{Item: out.Attributes, Capacity: units(out.ConsumedCapacity)}, nil
}

func (r Delete) send(ctx context.Context, to target) (Reply, error) {
	out, err := to.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                           &to.table,
		Key:                                 keyOr(r.Key),
		ConditionExpression:                 optional(r.If),
		ExpressionAttributeNames:            r.Names,
		ExpressionAttributeValues:           r.Values,
		ReturnValues:                        r.Return,
		ReturnValuesOnConditionCheckFailure: onFailure(r.OldIfFail),
		ReturnConsumedCapacity:              to.capacity,
	})
	if err != nil {
		return Reply{}, err
	}
	return Reply{Item: out.Attributes, Capacity: units(out.ConsumedCapacity)}, nil
}

// Metered wraps a request, so that the reply contains the capacity that the request consumed.
type Metered struct{ Request }

func (r Metered) send(ctx context.Context, to target) (Reply, error) {
	to.capacity = types.ReturnConsumedCapacityTotal
	return r.Request.send(ctx, to)
}

// Call is a Request that calls a function. Cases use it for operations for which this package
// has no type.
type Call func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error)

func (r Call) send(ctx context.Context, to target) (Reply, error) {
	return r(ctx, to.client, to.table)
}

// key returns a primary key with the given values, for a table with the key schema rangeKey.
func key(pk, sk string) Item { return Item{"pk": str(pk), "sk": str(sk)} }

// keyed returns an item with the given primary key and attributes, for a table with the key
// schema rangeKey.
func keyed(pk, sk string, attributes Item) Item {
	with := key(pk, sk)
	maps.Copy(with, attributes)
	return with
}

func keyOr(key Item) Item {
	if key == nil {
		return item(nil)
	}
	return key
}

// optional returns a pointer to the given expression, or nil if the expression is empty.
func optional(expression string) *string {
	if expression == "" {
		return nil
	}
	return &expression
}

func onFailure(old bool) types.ReturnValuesOnConditionCheckFailure {
	if old {
		return types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return ""
}

func units(c *types.ConsumedCapacity) float64 {
	if c == nil {
		return 0
	}
	return aws.ToFloat64(c.CapacityUnits)
}
