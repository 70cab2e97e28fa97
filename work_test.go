package leasehold_test

import (
	"context"

	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// work gives a world a table of the caller's, with key "id".
func (w *world) work() *world {
	w.t.Helper()
	_, err := w.db.CreateTable(w.t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("work"),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return w
}

func workKey(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": str(id)}
}

// note is a write that appends value to the log of an item of table work. It
// has many names and values: the SDK writes them in an order of its own.
func note(id, value string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                aws.String("work"),
		Key:                      workKey(id),
		UpdateExpression:         aws.String("SET #l = list_append(if_not_exists(#l, :none), :v), #a = :v, #b = :none"),
		ExpressionAttributeNames: map[string]string{"#l": "log", "#a": "last", "#b": "first"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":v": &types.AttributeValueMemberL{Value: []types.AttributeValue{str(value)}}, ":none": &types.AttributeValueMemberL{},
		},
	}}
}

// noteIf is note on condition that the item is open.
func noteIf(id, value string) types.TransactWriteItem {
	w := note(id, value)
	w.Update.ConditionExpression = aws.String("attribute_exists(#o)")
	w.Update.ExpressionAttributeNames["#o"] = "open"
	w.Update.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	return w
}

// open lets noteIf succeed on an item.
func (w *world) open(id string) {
	w.t.Helper()
	item := w.workItem(id)
	if item == nil {
		item = workKey(id)
	}
	item["open"] = str("yes")
	if _, err := w.db.PutItem(context.WithoutCancel(w.t.Context()), &dynamodb.PutItemInput{TableName: aws.String("work"), Item: item}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) workItem(id string) map[string]types.AttributeValue {
	w.t.Helper()
	out, err := w.db.GetItem(context.WithoutCancel(w.t.Context()), &dynamodb.GetItemInput{
		TableName: aws.String("work"), Key: workKey(id), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Item
}

// log returns what was appended to an item of table work.
func (w *world) log(id string) []string {
	w.t.Helper()
	return logOf(w.workItem(id))
}

func logOf(item map[string]types.AttributeValue) []string {
	var out []string
	if list, ok := item["log"].(*types.AttributeValueMemberL); ok {
		for _, v := range list.Value {
			out = append(out, v.(*types.AttributeValueMemberS).Value)
		}
	}
	return out
}

func (w *world) wantLog(want ...string) {
	w.t.Helper()
	if got := w.log("a"); !slices.Equal(got, want) {
		w.t.Errorf("written %q, want %q", got, want)
	}
}

func writes(w ...types.TransactWriteItem) []types.TransactWriteItem { return w }

func commits(calls []call) int { return countCalls(calls, call.commits) }

func countCalls(calls []call, is func(call) bool) int {
	n := 0
	for _, c := range calls {
		if is(c) {
			n++
		}
	}
	return n
}

// steal has somebody else hold the key, whatever its holder believes.
func (w *world) steal(key string) {
	w.t.Helper()
	w.update(key, map[string]types.AttributeValue{
		"ownerName": str("thief/00000000000000000000000000000000"), "grantId": str("theirs"), "recordVersionNumber": str("theirs"),
		"fencingToken": num("9000000000000000"),
	})
}

// respond answers every request that fits with a fault of DynamoDB.
func respond(fits func(call) bool, res func() *http.Response) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	return func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
		if fits(c) {
			return res(), nil
		}
		return next()
	}
}

// script gives the nth commit the nth fault, and passes the rest on.
func script(faults ...func(context.Context, call, func() (*http.Response, error)) (*http.Response, error)) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	var mu sync.Mutex
	n := 0
	return func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
		mu.Lock()
		i := -1
		if c.commits() {
			i = n
			n++
		}
		mu.Unlock()
		if i < 0 || i >= len(faults) || faults[i] == nil {
			return next()
		}
		return faults[i](ctx, c, next)
	}
}

// delayed loses sight of the request, which arrives that much later.
func delayed(d time.Duration) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	return func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
		go func() {
			time.Sleep(d)
			_, _ = next()
		}()
		return nil, errReset
	}
}

func answer(res func() *http.Response) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	return func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) { return res(), nil }
}
