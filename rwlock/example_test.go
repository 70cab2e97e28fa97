package rwlock_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/rwlock"
	"github.com/leasehold-go/leasehold/table"
)

// Several processes read a data set at the same time, and one process at a time replaces
// it.
func Example() {
	ctx := context.Background()
	db := localdynamo.New().Client() // on AWS: dynamodb.NewFromConfig(cfg)
	if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil {
		log.Fatal(err)
	}
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	rw, err := rwlock.New(locks, "dataset/7", 2)
	if err != nil {
		log.Fatal(err)
	}
	read := func(inside *sync.WaitGroup) error {
		return rw.DoRead(ctx, func(ctx context.Context, _ *leasehold.Lock) error {
			inside.Done()
			inside.Wait() // waits until both readers are inside
			return ctx.Err()
		})
	}
	var inside, done sync.WaitGroup
	inside.Add(2)
	for range 2 {
		done.Go(func() {
			if err := read(&inside); err != nil {
				log.Fatal(err)
			}
		})
	}
	done.Wait()
	fmt.Println("two read at a time")

	err = rw.DoWrite(ctx, func(ctx context.Context, group *leasehold.Group) error {
		return group.Commit(ctx, nil) // a program passes its writes instead of nil: they are applied only under this lock
	})
	fmt.Println("written alone:", err == nil)

	// Output:
	// two read at a time
	// written alone: true
}
