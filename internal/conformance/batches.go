package conformance

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// batchCases returns the cases for BatchGetItem and BatchWriteItem.
func batchCases() []Case {
	a, b := item(Item{"x": num("1"), "y": num("2")}), keyedHash("b", Item{"x": num("3")})
	keyA, keyB, keyC := item(nil), keyedHash("b", nil), keyedHash("c", nil)
	return []Case{
		{
			Name:  "BatchGetItem returns the items that exist",
			Given: []Item{a, b},
			When:  BatchGet{Keys: []Item{keyC, keyB, keyA}},
			Want:  Reply{Items: []Item{a, b}},
		},
		{
			Name: "BatchGetItem of missing items",
			When: BatchGet{Keys: []Item{keyA}},
		},
		{
			Name:  "BatchGetItem with a projection",
			Given: []Item{a, b},
			When:  BatchGet{Keys: []Item{keyB, keyA}, Project: "#n, y", Names: Names{"#n": "x"}},
			Want:  Reply{Items: []Item{{"x": num("1"), "y": num("2")}, {"x": num("3")}}},
		},
		{
			Name: "BatchGetItem of one key twice",
			When: BatchGet{Keys: []Item{keyA, keyA}},
			Want: invalid("Provided list of item keys contains duplicates"),
		},
		{
			Name: "BatchGetItem of a hundred keys",
			When: BatchGet{Keys: manyKeys(100)},
		},
		{
			Name: "BatchGetItem of 101 keys",
			When: BatchGet{Keys: manyKeys(101)},
			Want: invalid("1 validation error detected: Value '…' at 'requestItems.{table}.member.keys' failed to satisfy constraint: Member must have length less than or equal to 100"),
		},
		{
			Name: "BatchGetItem of a wrong key",
			When: BatchGet{Keys: []Item{{"id": str("a")}}},
			Want: invalid("The provided key element does not match the schema"),
		},
		{
			Name:  "BatchWriteItem puts and deletes",
			Given: []Item{a, keyC},
			When:  BatchWrite{Put: []Item{b}, Delete: []Item{keyA, keyC}},
			Then:  []Item{b},
		},
		{
			Name: "BatchWriteItem deletes a missing item",
			When: BatchWrite{Delete: []Item{keyA}},
			Then: []Item{},
		},
		{
			Name: "BatchWriteItem of 25 items",
			When: BatchWrite{Put: manyKeys(25)},
			Then: manyKeys(25),
		},
		{
			Name: "BatchWriteItem of 26 items",
			When: BatchWrite{Put: manyKeys(26)},
			Want: invalid("1 validation error detected: Value '…' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]"),
			Then: []Item{},
		},
		{
			Name:  "BatchWriteItem with two writes of one item",
			Given: []Item{a},
			When:  BatchWrite{Put: []Item{b, keyA}, Delete: []Item{keyA}},
			Want:  invalid("Provided list of item keys contains duplicates"),
			Then:  []Item{a},
		},
		{
			Name: "BatchWriteItem of an item without its key puts nothing",
			When: BatchWrite{Put: []Item{a, {"x": num("1")}}},
			Want: invalid("One or more parameter values were invalid: Missing the key pk in the item"),
			Then: []Item{},
		},
		{
			Name: "BatchGetItem of an unknown table",
			When: Call(func(ctx context.Context, client *dynamodb.Client, _ string) (Reply, error) {
				return BatchGet{Keys: []Item{keyA}}.send(ctx, target{client: client, table: "conformance-none"})
			}),
			Want: notFound("Requested resource not found"),
		},
		{
			Name: "BatchWriteItem of two tables",
			When: Call(func(ctx context.Context, client *dynamodb.Client, table string) (reply Reply, err error) {
				second := table + "-second"
				if _, err := client.CreateTable(ctx, creation(second, rangeKey)); err != nil {
					return Reply{}, err
				}
				defer func() {
					if _, e := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &second}); err == nil {
						err = e
					}
				}()
				_, err = client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
					table:  {{PutRequest: &types.PutRequest{Item: a}}},
					second: {{PutRequest: &types.PutRequest{Item: key("a", "1")}}},
				}})
				if err != nil {
					return Reply{}, err
				}
				out, err := client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
					table:  {Keys: []Item{keyA}, ConsistentRead: aws.Bool(true)},
					second: {Keys: []Item{key("a", "1")}, ConsistentRead: aws.Bool(true)},
				}})
				if err != nil {
					return Reply{}, err
				}
				return Reply{Items: append(out.Responses[table], out.Responses[second]...)}, nil
			}),
			Want: Reply{Items: []Item{a, key("a", "1")}},
		},
	}
}

// manyKeys returns the keys of n items. The keys fit a table with the key schema hashKey.
func manyKeys(n int) []Item {
	var keys []Item
	for i := range n {
		keys = append(keys, Item{"pk": str(fmt.Sprintf("many-%03d", i))})
	}
	return keys
}

func notFound(text string) Reply {
	return Reply{Err: &Fault{Code: "ResourceNotFoundException", Text: text}}
}
