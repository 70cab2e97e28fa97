// Dynamolock is an example of a program that has moved from the library dynamolock to leasehold.
// The environment variable LOCK_LAYOUT selects the layout of the records that the program writes.
// Set it to "dynamolock" while processes with the old library share the table, and to "native" once
// the last of these processes has ended. With either value, the program also respects locks in the
// other layout. So a deployment may change LOCK_LAYOUT host by host. docs/migrating/dynamolock.md
// has the steps.
//
//	go run ./cmd/leasehold local -- sh -c 'for l in dynamolock native; do LOCK_LAYOUT=$l go run ./examples/dynamolock; done'
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

func main() {
	if err := run(context.Background(), os.Getenv("LOCK_LAYOUT")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name string) error {
	written, err := layout.Parse(name)
	if err != nil {
		return err
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	db := dynamodb.NewFromConfig(cfg)
	// With dynamolock this was c.CreateTable("locks"). Both layouts use the same table.
	if err := table.Create(ctx, db, table.Spec{Name: "locks", Layout: layout.Dynamolock{}}); err != nil {
		return err
	}
	// With dynamolock this was dynamolock.New(db, "locks", dynamolock.WithLeaseDuration(20*time.Second)).
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks", Layout: written})
	if err != nil {
		return err
	}
	defer locks.Close(ctx)
	// With dynamolock this was c.AcquireLock("invoices"), then the work, then
	// c.ReleaseLock(lock).
	return locks.Do(ctx, "invoices", func(ctx context.Context, lock *leasehold.Lock) error {
		fmt.Printf("layout %s: holds %s with token %d\n", name, lock.Key(), lock.Token())
		return ctx.Err()
	})
}
