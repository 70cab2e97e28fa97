package regions_test

import (
	"context"
	"log"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/regions"
)

// This table is a DynamoDB global table with multi-Region strong consistency.
func Example() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	in := func(region string) *dynamodb.Client {
		return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.Region = region })
	}
	db := regions.New(in("us-east-1"), in("us-east-2"), in("us-west-2"))
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	err = locks.Do(ctx, "nightly-report", func(context.Context, *leasehold.Lock) error {
		log.Printf("requests go to %s", db.Region())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}
