package localdynamo_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
)

func TestSDKReturnsTransactionCanceledException(t *testing.T) {
	client := newTable(t, localdynamo.New())
	lab.OK(t, increment(t.Context(), client, "taken"))
	_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String("locks"), Item: key("new")}},
		{Put: &types.Put{
			TableName: aws.String("locks"), Item: key("taken"), ConditionExpression: aws.String("attribute_not_exists(id)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}},
	}})
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != 2 {
		t.Fatalf("err = %v", err)
	}
	none, failed := cancelled.CancellationReasons[0], cancelled.CancellationReasons[1]
	if *none.Code != "None" || *failed.Code != "ConditionalCheckFailed" || numberIn(failed.Item, "n") != 1 {
		t.Errorf("reasons %v", cancelled.CancellationReasons)
	}
	if get(t, client, "new") != nil {
		t.Error("a part of a cancelled transaction was carried out")
	}
}

func TestRepeatedClientRequestTokenWritesOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, e *localdynamo.Engine) {
		client := newTable(t, e)
		write := func(token, id string) error {
			_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
				ClientRequestToken: aws.String(token),
				TransactItems: []types.TransactWriteItem{{Update: &types.Update{
					TableName: aws.String("locks"), Key: key(id), UpdateExpression: aws.String("ADD n :one"),
					ExpressionAttributeValues: map[string]types.AttributeValue{":one": number(1)},
				}}},
			})
			return err
		}
		for range 3 {
			lab.OK(t, write("token", "k"))
		}
		if n := numberIn(get(t, client, "k"), "n"); n != 1 {
			t.Errorf("n = %d after one request sent three times", n)
		}
		var mismatch *types.IdempotentParameterMismatchException
		if err := write("token", "other"); !errors.As(err, &mismatch) {
			t.Errorf("another request with the same token: %v", err)
		}
		if err := write("token2", "k"); err != nil || numberIn(get(t, client, "k"), "n") != 2 {
			t.Errorf("the same request with another token: %v", err)
		}
	})
}

func TestClientRequestTokenIsForgottenAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newTable(t, localdynamo.New())
		write := func() {
			lab.Must(client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
				ClientRequestToken: aws.String("token"),
				TransactItems: []types.TransactWriteItem{{Update: &types.Update{
					TableName: aws.String("locks"), Key: key("k"), UpdateExpression: aws.String("ADD n :one"),
					ExpressionAttributeValues: map[string]types.AttributeValue{":one": number(1)},
				}}},
			}))(t)
		}
		write()
		time.Sleep(10*time.Minute - time.Second)
		write()
		if n := numberIn(get(t, client, "k"), "n"); n != 1 {
			t.Errorf("n = %d before ten minutes", n)
		}
		time.Sleep(2 * time.Second)
		write()
		if n := numberIn(get(t, client, "k"), "n"); n != 2 {
			t.Errorf("n = %d after ten minutes", n)
		}
	})
}
