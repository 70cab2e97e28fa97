package semaphore_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/semaphore"
	"github.com/leasehold-go/leasehold/table"
)

// openDB replaces dynamodb.NewFromConfig(cfg) in these examples. It creates the lock table
// in an embedded engine, which answers within this process.
func openDB(ctx context.Context) *dynamodb.Client {
	db := localdynamo.New().Client()
	if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil {
		log.Fatal(err)
	}
	return db
}

// render calls draw for each job. At most three calls run at a time on all hosts together.
func render(ctx context.Context, locks *leasehold.Client, jobs <-chan string, draw func(context.Context, string) error) error {
	gpu, err := semaphore.New(locks, "gpu", 3)
	if err != nil {
		return err
	}
	for job := range jobs {
		err := gpu.Do(ctx, func(ctx context.Context, _ *leasehold.Lock) error { return draw(ctx, job) })
		if err != nil {
			return err
		}
	}
	return nil
}

// At most three workers run at a time on all hosts together.
func Example() {
	ctx := context.Background()
	db := openDB(ctx) // on AWS: dynamodb.NewFromConfig(cfg)

	jobs := make(chan string)
	var working, done, tooMany atomic.Int32
	draw := func(ctx context.Context, _ string) error {
		if working.Add(1) > 3 {
			tooMany.Add(1)
		}
		defer working.Add(-1)
		done.Add(1)
		return ctx.Err()
	}
	var workers sync.WaitGroup
	for range 5 { // each iteration stands for one host
		locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
		if err != nil {
			log.Fatal(err)
		}
		defer locks.Close(ctx)
		workers.Go(func() {
			if err := render(ctx, locks, jobs, draw); err != nil {
				log.Fatal(err)
			}
		})
	}
	for i := range 20 {
		jobs <- fmt.Sprint("frame ", i)
	}
	close(jobs)
	workers.Wait()
	fmt.Println("done:", done.Load(), "too many:", tooMany.Load())

	// Output: done: 20 too many: 0
}
