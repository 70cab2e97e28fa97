package conformance

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TransactWrite is a TransactWriteItems request that consists of Put, Update, Delete and Check. The
// Return fields of these requests are ignored.
type TransactWrite struct {
	Writes []Request
	Token  string // ClientRequestToken; if empty, the SDK generates a token
}

// Check is a ConditionCheck in a TransactWrite. A Check that is sent alone becomes a transaction of
// one item.
type Check struct {
	Key       Item
	If        string
	Names     Names
	Values    Item
	OldIfFail bool
}

// TransactGet is a TransactGetItems request. If an item does not exist, its element in the
// reply is empty.
type TransactGet []Get

func (r TransactWrite) send(ctx context.Context, to target) (Reply, error) {
	in := &dynamodb.TransactWriteItemsInput{
		ClientRequestToken:     optional(r.tokenFor(to.table)),
		ReturnConsumedCapacity: to.capacity,
	}
	for _, w := range r.Writes {
		in.TransactItems = append(in.TransactItems, transactItem(w, to.table))
	}
	out, err := to.client.TransactWriteItems(ctx, in)
	if err != nil {
		return Reply{}, err
	}
	return Reply{Capacity: total(out.ConsumedCapacity)}, nil
}

// tokenFor returns the idempotency token with the table's name added. Each case has its own table,
// and DynamoDB compares the tokens of all tables of an account, so different cases need different
// tokens. If the token is empty or too long, tokenFor returns it unchanged.
func (r TransactWrite) tokenFor(table string) string {
	if r.Token == "" || len(r.Token) > 36 {
		return r.Token
	}
	return r.Token + "-" + table
}

func transactItem(w Request, table string) types.TransactWriteItem {
	switch w := w.(type) {
	case Put:
		return types.TransactWriteItem{Put: &types.Put{
			TableName:                           &table,
			Item:                                keyOr(w.Item),
			ConditionExpression:                 optional(w.If),
			ExpressionAttributeNames:            w.Names,
			ExpressionAttributeValues:           w.Values,
			ReturnValuesOnConditionCheckFailure: onFailure(w.OldIfFail),
		}}
	case Update:
		return types.TransactWriteItem{Update: &types.Update{
			TableName:                           &table,
			Key:                                 keyOr(w.Key),
			UpdateExpression:                    optional(w.Do),
			ConditionExpression:                 optional(w.If),
			ExpressionAttributeNames:            w.Names,
			ExpressionAttributeValues:           w.Values,
			ReturnValuesOnConditionCheckFailure: onFailure(w.OldIfFail),
		}}
	case Delete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName:                           &table,
			Key:                                 keyOr(w.Key),
			ConditionExpression:                 optional(w.If),
			ExpressionAttributeNames:            w.Names,
			ExpressionAttributeValues:           w.Values,
			ReturnValuesOnConditionCheckFailure: onFailure(w.OldIfFail),
		}}
	case Check:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName:                           &table,
			Key:                                 keyOr(w.Key),
			ConditionExpression:                 optional(w.If),
			ExpressionAttributeNames:            w.Names,
			ExpressionAttributeValues:           w.Values,
			ReturnValuesOnConditionCheckFailure: onFailure(w.OldIfFail),
		}}
	}
	panic(fmt.Sprintf("conformance: %T is no write of a transaction", w))
}

func (r Check) send(ctx context.Context, to target) (Reply, error) {
	return TransactWrite{Writes: []Request{r}}.send(ctx, to)
}

func (r TransactGet) send(ctx context.Context, to target) (Reply, error) {
	in := &dynamodb.TransactGetItemsInput{ReturnConsumedCapacity: to.capacity}
	for _, g := range r {
		in.TransactItems = append(in.TransactItems, types.TransactGetItem{Get: &types.Get{
			TableName:                &to.table,
			Key:                      keyOr(g.Key),
			ProjectionExpression:     optional(g.Project),
			ExpressionAttributeNames: g.Names,
		}})
	}
	out, err := to.client.TransactGetItems(ctx, in)
	if err != nil {
		return Reply{}, err
	}
	reply := Reply{Capacity: total(out.ConsumedCapacity)}
	for _, response := range out.Responses {
		reply.Items = append(reply.Items, response.Item)
	}
	return reply, nil
}
