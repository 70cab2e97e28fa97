package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
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

func Example() {
	ctx := context.Background()
	db := openDB(ctx) // on AWS: dynamodb.NewFromConfig(cfg)

	locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	err = locks.Do(ctx, "nightly-report", func(ctx context.Context, lock *leasehold.Lock) error {
		// Until ctx ends, no other process holds the key. ctx ends if the lock is lost.
		return report(ctx, lock.Token())
	})
	if err != nil {
		log.Fatal(err)
	}

	// Output: reported
}

func report(ctx context.Context, token int64) error {
	if token > 0 && ctx.Err() == nil {
		fmt.Println("reported")
	}
	return ctx.Err()
}

// Every night, cron starts this program on every host. One process acquires the key. The
// others exit immediately, because TryAcquire does not wait for a live holder. If the
// holder has died, TryAcquire observes the record for the length of its lease, and then
// takes the key over.
func ExampleClient_TryAcquire() {
	ctx := context.Background()
	db := openDB(ctx)
	nightly := func() {
		locks, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
		defer locks.Close(ctx)
		lock, err := locks.TryAcquire(ctx, "nightly-report")
		if errors.Is(err, leasehold.ErrHeld) {
			fmt.Println("another host is at work")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		err = lock.Do(ctx, func(ctx context.Context, lock *leasehold.Lock) error { return report(ctx, lock.Token()) })
		if err != nil {
			log.Fatal(err)
		}
	}

	other, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	defer other.Close(ctx)
	theirs, err := other.Acquire(ctx, "nightly-report")
	if err != nil {
		log.Fatal(err)
	}
	nightly()
	if err := theirs.Release(ctx); err != nil {
		log.Fatal(err)
	}
	nightly()

	// Output:
	// another host is at work
	// reported
}

// With NoWait, a program skips work that another process is already doing.
func ExampleNoWait() {
	ctx := context.Background()
	db := openDB(ctx)
	first, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	second, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	defer first.Close(ctx)
	defer second.Close(ctx)

	err := first.Do(ctx, "nightly-report", func(ctx context.Context, _ *leasehold.Lock) error {
		err := second.Do(ctx, "nightly-report", func(context.Context, *leasehold.Lock) error { return nil }, leasehold.NoWait())
		fmt.Println("skipped:", errors.Is(err, leasehold.ErrHeld) && errors.Is(err, leasehold.ErrNotRun))
		return nil
	})
	fmt.Println("error:", err)

	// Output:
	// skipped: true
	// error: <nil>
}

// The timeout limits only the wait for the key. The lock lasts until the work has ended.
func ExampleClient_Acquire() {
	ctx := context.Background()
	locks, _ := leasehold.New(openDB(ctx), leasehold.Config{Table: "locks"})
	defer locks.Close(ctx)

	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	lock, err := locks.Acquire(wait, "reindex")
	cancel()
	if err != nil {
		log.Fatal(err) // after a timeout: matches ErrHeld and context.DeadlineExceeded
	}
	err = lock.Do(ctx, func(ctx context.Context, _ *leasehold.Lock) error {
		fmt.Println("reindexing")
		return ctx.Err()
	})
	fmt.Println("error:", err)

	// Output:
	// reindexing
	// error: <nil>
}

// A workflow has two steps, which may run on different machines. The first step acquires
// the lock, and the last step releases it.
func ExampleLock_Detach() {
	ctx := context.Background()
	db := openDB(ctx)
	begin, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	finish, _ := leasehold.New(db, leasehold.Config{Table: "locks"})

	lock, err := begin.Acquire(ctx, "deploy/prod", leasehold.WithoutRenewal(), leasehold.WithLease(10*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	grant, err := lock.Detach() // the workflow stores the grant as JSON for its last step
	if err != nil {
		log.Fatal(err)
	}

	resumed, err := finish.Resume(ctx, grant)
	if err != nil {
		log.Fatal(err) // ErrLost if the workflow took longer than the lease
	}
	fmt.Println("same token:", resumed.Token() == lock.Token())
	fmt.Println("error:", resumed.Release(ctx))

	// Output:
	// same token: true
	// error: <nil>
}

// A transfer locks two accounts. Transfers in opposite directions do not deadlock, because
// AcquireAll sorts the keys.
func ExampleClient_AcquireAll() {
	ctx := context.Background()
	db := openDB(ctx)
	openCustomers(ctx, db)
	locks, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	defer locks.Close(ctx)

	transfer := func(from, to string) error {
		both, err := locks.AcquireAll(ctx, leasehold.Keys("account/"+from, "account/"+to))
		if err != nil {
			return err
		}
		return both.Do(ctx, func(ctx context.Context, both *leasehold.Group) error {
			return both.Commit(ctx, []types.TransactWriteItem{add(from, "-10").item(), add(to, "10").item()})
		})
	}
	fmt.Println("error:", errors.Join(transfer("42", "43"), transfer("43", "42")))

	// Output: error: <nil>
}

// A company has a few licences. AcquireAny acquires the first licence that is free.
func ExampleClient_AcquireAny() {
	ctx := context.Background()
	db := openDB(ctx)
	first, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	second, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	defer first.Close(ctx)
	defer second.Close(ctx)

	licences := leasehold.Keys("licence/1", "licence/2")
	for _, locks := range []*leasehold.Client{first, second} {
		lock, err := locks.AcquireAny(ctx, licences)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lock.Key())
	}

	// Output:
	// licence/1
	// licence/2
}

// The holder stores data in the record. The next holder reads it.
func ExampleWithData() {
	ctx := context.Background()
	locks, _ := leasehold.New(openDB(ctx), leasehold.Config{Table: "locks"})
	defer locks.Close(ctx)

	for range 2 {
		err := locks.Do(ctx, "migrations/shop", func(ctx context.Context, lock *leasehold.Lock) error {
			fmt.Printf("was at %q\n", lock.Record().Data)
			return lock.Renew(ctx, leasehold.WithData([]byte("version 7")))
		})
		if err != nil {
			log.Fatal(err)
		}
	}

	// Output:
	// was at ""
	// was at "version 7"
}

// Watch shows the changes of a key without acquiring it.
func ExampleClient_Watch() {
	ctx := context.Background()
	db := openDB(ctx)
	migrates, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	watches, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	defer migrates.Close(ctx)
	defer watches.Close(ctx)

	lock, err := migrates.Acquire(ctx, "migrate/prod", leasehold.WithData([]byte("to version 7")))
	if err != nil {
		log.Fatal(err)
	}
	for seen, err := range watches.Watch(ctx, "migrate/prod") {
		switch {
		case err != nil:
			log.Fatal(err)
		case seen.Holder == nil:
			fmt.Println("done")
			return
		case seen.Dead:
			fmt.Println("died")
			return
		case seen.NewGrant:
			fmt.Printf("migrates %s\n", seen.Holder.Data)
			_ = lock.Release(ctx) // in practice, the other process releases its lock
		}
	}

	// Output:
	// migrates to version 7
	// done
}

// The first process of each day writes a report. If its work fails, the next process tries
// again.
func ExampleEvery() {
	ctx := context.Background()
	locks, _ := leasehold.New(openDB(ctx), leasehold.Config{Table: "locks"})
	defer locks.Close(ctx)

	attempt := 0
	report := func(context.Context, *leasehold.Lock) error {
		if attempt++; attempt == 1 {
			return errors.New("no data yet")
		}
		return nil
	}
	for range 3 { // each iteration stands for one host
		err := locks.Do(ctx, "nightly-report", report, leasehold.Every(24*time.Hour))
		switch {
		case errors.Is(err, leasehold.ErrDone):
			fmt.Println("done before")
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println("done")
		}
	}
	// Output:
	// no data yet
	// done
	// done before
}

// Each commit is deployed once: the release marks the deployment as done, and later calls
// return a DoneError.
func ExampleOnce() {
	ctx := context.Background()
	locks, _ := leasehold.New(openDB(ctx), leasehold.Config{Table: "locks"})
	defer locks.Close(ctx)

	for _, commit := range []string{"8c1f", "8c1f", "a07e"} {
		lock, err := locks.Acquire(ctx, "deploy", leasehold.Once(commit))
		var done *leasehold.DoneError
		if errors.As(err, &done) {
			fmt.Println(done.Done.Once, "is deployed, by token", done.Done.Token > 0)
			continue
		}
		fmt.Println("deploying", commit)
		_ = lock.Release(ctx, leasehold.MarkDone())
	}
	// Output:
	// deploying 8c1f
	// 8c1f is deployed, by token true
	// deploying a07e
}
