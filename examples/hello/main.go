// Hello runs a function while it holds a lock.
//
//	go run ./cmd/leasehold local -- go run ./examples/hello
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/table"
)

func main() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	db := dynamodb.NewFromConfig(cfg)
	if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil { // if it is missing; turns TTL on
		log.Fatal(err)
	}
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	err = locks.Do(ctx, "nightly-report", func(ctx context.Context, lock *leasehold.Lock) error {
		fmt.Println("working on", lock.Key()) // as the only process; ctx ends if the lock is lost
		return ctx.Err()
	})
	if err := errors.Join(err, locks.Close(ctx)); err != nil {
		log.Fatal(err)
	}
}
