// Customers pays the invoices of several customers. Over all processes, at most one worker
// at a time works for a customer, and each invoice is paid once. Start the program on as
// many hosts as you like.
//
//	go run ./cmd/leasehold local -- sh -c 'go run ./examples/customers & go run ./examples/customers; wait'
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/table"
)

// invoices is the number of invoices of each customer.
const invoices = 3

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	db := dynamodb.NewFromConfig(cfg)
	if err := createTables(ctx, db); err != nil {
		return err
	}
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
	if err != nil {
		return err
	}
	defer locks.Close(ctx)

	var workers errgroup.Group
	for _, customer := range []string{"ann", "bob", "cid"} {
		workers.Go(func() error {
			return locks.Do(ctx, "customer/"+customer, func(ctx context.Context, lock *leasehold.Lock) error {
				return work(ctx, lock, customer)
			})
		})
	}
	return workers.Wait()
}

// work pays a customer's unpaid invoices. lock.Read returns what all earlier holders of the
// lock have committed. lock.Commit writes only while this process holds the lock.
func work(ctx context.Context, lock *leasehold.Lock, customer string) error {
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: customer}}
	items, err := lock.Read(ctx, []types.TransactGetItem{{Get: &types.Get{TableName: aws.String("customers"), Key: key}}})
	if err != nil {
		return err
	}
	paid := 0
	if n, ok := items[0]["paid"].(*types.AttributeValueMemberN); ok {
		if paid, err = strconv.Atoi(n.Value); err != nil {
			return err
		}
	}
	for n := paid + 1; n <= invoices; n++ {
		err := lock.Commit(ctx, []types.TransactWriteItem{{Update: &types.Update{
			TableName: aws.String("customers"), Key: key,
			UpdateExpression:          aws.String("SET paid = :n"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: strconv.Itoa(n)}},
		}}})
		if err != nil {
			return err // if the error is ErrLost, Commit has written nothing, and another worker continues
		}
		fmt.Printf("%s: invoice %d is paid\n", customer, n)
	}
	return nil
}

// createTables creates the lock table and the table of customers, unless they exist.
func createTables(ctx context.Context, db *dynamodb.Client) error {
	if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil {
		return err
	}
	_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("customers"),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	})
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return err
	}
	wait := dynamodb.NewTableExistsWaiter(db)
	return wait.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("customers")}, time.Minute)
}
