package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
)

// openCustomers creates the application's own table, with one customer in it.
func openCustomers(ctx context.Context, db *dynamodb.Client) {
	_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("customers"),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.UpdateItem(ctx, add("42", "100").updateItem()); err != nil {
		log.Fatal(err)
	}
}

// add returns a write that adds the given cents to a customer's balance, on the condition that the
// account is open.
func add(id, cents string) change {
	return change{&types.Update{
		TableName:                 aws.String("customers"),
		Key:                       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
		UpdateExpression:          aws.String("ADD balance :c"),
		ConditionExpression:       aws.String("attribute_not_exists(closed)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":c": &types.AttributeValueMemberN{Value: cents}},
	}}
}

type change struct{ *types.Update }

func (c change) item() types.TransactWriteItem { return types.TransactWriteItem{Update: c.Update} }

func (c change) updateItem() *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: c.TableName, Key: c.Key, UpdateExpression: c.UpdateExpression,
		ConditionExpression: c.ConditionExpression, ExpressionAttributeValues: c.ExpressionAttributeValues,
	}
}

// One transaction adds to the customer's balance and frees the key. It is rejected once the
// lock is lost.
func ExampleLock_CommitAndRelease() {
	ctx := context.Background()
	db := openDB(ctx)
	openCustomers(ctx, db)
	locks, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	defer locks.Close(ctx)

	err := locks.Do(ctx, "customer/42", func(ctx context.Context, lock *leasehold.Lock) error {
		return lock.CommitAndRelease(ctx, []types.TransactWriteItem{add("42", "250").item()})
	})
	var failed *leasehold.CommitError
	switch {
	case errors.As(err, &failed) && aws.ToString(failed.Reasons[0].Code) == "ConditionalCheckFailed":
		fmt.Println("the account is closed")
	case errors.Is(err, leasehold.ErrUnknownOutcome):
		fmt.Println("read the balance before trying again")
	case err != nil:
		fmt.Println("not charged:", err) // for example ErrLost
	default:
		fmt.Println("charged")
	}

	// Output: charged
}

// The application sends its own transaction. Guards adds the condition that the lock is
// still held.
func ExampleLock_Guards() {
	ctx := context.Background()
	db := openDB(ctx)
	openCustomers(ctx, db)
	locks, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	defer locks.Close(ctx)

	lock, err := locks.Acquire(ctx, "transfer")
	if err != nil {
		log.Fatal(err)
	}
	transfer := func() error {
		writes := []types.TransactWriteItem{add("42", "-30").item(), add("43", "30").item()}
		_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: append(writes, lock.Guards()...)})
		return lock.GuardError(err, len(writes))
	}
	fmt.Println("while the lock is held:", transfer())

	if err := locks.Break(ctx, lock.Record(), leasehold.BreakOptions{}); err != nil { // an operator breaks the lock
		log.Fatal(err)
	}
	fmt.Println("after that, lost:", errors.Is(transfer(), leasehold.ErrLost))

	// Output:
	// while the lock is held: <nil>
	// after that, lost: true
}
