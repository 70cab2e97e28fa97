package election_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/localdynamo"
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

// One of several replicas of a service runs the schedule. The other replicas forward
// requests to it.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	locks, err := leasehold.New(openDB(ctx), leasehold.Config{Table: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	e, err := election.New(locks, "scheduler")
	if err != nil {
		log.Fatal(err)
	}
	var leader atomic.Pointer[election.Leader] // the current leader, for the requests that this replica forwards
	changed := make(chan struct{})

	var replica sync.WaitGroup
	replica.Go(func() {
		err := e.Lead(ctx, "10.0.0.7:8080", schedule)
		if !errors.Is(err, context.Canceled) {
			log.Print(err)
		}
	})
	replica.Go(func() {
		defer close(changed)
		for l, err := range e.Observe(ctx) {
			if err != nil {
				log.Print(err)
				return
			}
			leader.Store(&l)
			if l.Token != 0 {
				changed <- struct{}{}
			}
		}
	})

	<-changed
	fmt.Println("forward to", leader.Load().Value)
	stop()
	for range changed { // the channel closes when the observation has ended
	}
	replica.Wait()
	if err := locks.Close(context.Background()); err != nil {
		log.Print(err)
	}

	// Output: forward to 10.0.0.7:8080
}

// schedule works until the term is lost or the service stops.
func schedule(ctx context.Context, term *leasehold.Lock) error {
	log.Printf("leading, term %d", term.Token())
	<-ctx.Done()
	return context.Cause(ctx)
}

// A term is a lock: this example acquires it, observes it from another client, and releases
// it.
func ExampleElection_Campaign() {
	ctx := context.Background()
	db := openDB(ctx)
	mine, _ := leasehold.New(db, leasehold.Config{Table: "locks", Owner: "a"})
	theirs, _ := leasehold.New(db, leasehold.Config{Table: "locks", Owner: "b"})

	here, err := election.New(mine, "scheduler")
	if err != nil {
		log.Fatal(err)
	}
	elsewhere, err := election.New(theirs, "scheduler")
	if err != nil {
		log.Fatal(err)
	}
	term, err := here.Campaign(ctx, "10.0.0.7:8080")
	if err != nil {
		log.Fatal(err)
	}
	leader, err := elsewhere.Leader(ctx)
	fmt.Println(leader.Value, leader.Token == term.Token(), err)

	if err := term.Release(ctx); err != nil { // the leader resigns
		log.Fatal(err)
	}
	_, err = elsewhere.Leader(ctx)
	fmt.Println(err)

	// Output:
	// 10.0.0.7:8080 true <nil>
	// election: no leader
}
