package localdynamo

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// newTestTable returns a client of an engine with a table "locks" whose key is
// the string "id", and which has no sort key.
func newTestTable(tb testing.TB, e *Engine) *dynamodb.Client {
	tb.Helper()
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	client := e.Client()
	createTestTable(tb, client)
	return client
}

func createTestTable(tb testing.TB, client *dynamodb.Client) {
	tb.Helper()
	_, err := client.CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName:            aws.String("locks"),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func key(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
}

func count(ctx context.Context, client *dynamodb.Client) error {
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String("locks"),
		Key:                       key("k"),
		UpdateExpression:          aws.String("SET n = if_not_exists(n, :zero) + :one"),
		ConditionExpression:       aws.String("attribute_not_exists(id) OR n >= :zero"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":zero": &types.AttributeValueMemberN{Value: "0"}, ":one": &types.AttributeValueMemberN{Value: "1"}},
		ReturnValues:              types.ReturnValueAllNew,
	})
	return err
}

func TestSixtyFourGoroutinesCountExactly(t *testing.T) {
	client := newTestTable(t, New())
	const goroutines, each = 64, 50
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				if err := count(t.Context(), client); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("locks"), Key: key("k"), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	if n := out.Item["n"].(*types.AttributeValueMemberN).Value; n != "3200" {
		t.Errorf("n = %s after %d increments", n, goroutines*each)
	}
}

func TestAFailedConditionReturnsTheOldItem(t *testing.T) {
	client := newTestTable(t, New())
	if err := count(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName:                           aws.String("locks"),
		Item:                                key("k"),
		ConditionExpression:                 aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		t.Fatalf("err = %v", err)
	}
	if n := failed.Item["n"].(*types.AttributeValueMemberN).Value; n != "1" {
		t.Errorf("the old item's n = %s", n)
	}
}
