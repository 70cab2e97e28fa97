package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

// OnEvent can update an application's own metrics. For Prometheus and OpenTelemetry there
// are ready adapters: leaseholdprom and leaseholdotel.
func ExampleConfig_OnEvent() {
	ctx := context.Background()
	var lost, requests atomic.Int64
	locks, err := leasehold.New(openDB(ctx), leasehold.Config{Table: "locks", OnEvent: func(_ context.Context, e leasehold.Event) {
		if e.Kind == leasehold.EventLost {
			lost.Add(1)
		}
		if e.Kind != leasehold.EventThrottled { // the event of the finished call includes the throttled requests
			requests.Add(int64(e.Requests))
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	if err := locks.Do(ctx, "nightly-report", func(ctx context.Context, _ *leasehold.Lock) error { return ctx.Err() }); err != nil {
		log.Fatal(err)
	}
	fmt.Println("lost:", lost.Load(), "requests:", requests.Load())

	// Output: lost: 0 requests: 2
}

// The SDK reads a credentials file once. It also caches credentials from a
// credential_process or from single sign-on. If these credentials may be replaced while a
// service holds locks, the service must invalidate the cache when DynamoDB refuses them.
func ExampleConfig_OnEvent_credentials() {
	ctx := context.Background()
	credentials := aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		now, err := config.LoadDefaultConfig(ctx) // LoadDefaultConfig reads the credentials file again
		if err != nil {
			return aws.Credentials{}, err
		}
		return now.Credentials.Retrieve(ctx)
	}))
	cfg, err := config.LoadDefaultConfig(ctx, config.WithCredentialsProvider(credentials))
	if err != nil {
		log.Fatal(err)
	}
	locks, err := leasehold.New(dynamodb.NewFromConfig(cfg), leasehold.Config{Table: "locks", OnEvent: func(_ context.Context, e leasehold.Event) {
		var refused smithy.APIError
		if errors.As(e.Err, &refused) && (refused.ErrorCode() == "ExpiredTokenException" || refused.ErrorCode() == "UnrecognizedClientException") {
			credentials.Invalidate() // the SDK loads new credentials for its next attempt
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
}

// A service moves from dynamolock, or from the Java client, one process at a time. At first each
// process uses the layout dynamolock (or awslabs), which shares the table with the old clients.
// The processes change to the layout native once the last old client is gone.
func Example_moveOffDynamolock() {
	ctx := context.Background()
	db := openDB(ctx) // on AWS: dynamodb.NewFromConfig(cfg)

	for _, name := range []string{"dynamolock", "native"} { // in practice: os.Getenv("LOCK_LAYOUT")
		l, err := layout.Parse(name)
		if err != nil {
			log.Fatal(err)
		}
		locks, err := leasehold.New(db, leasehold.Config{Table: "locks", Layout: l})
		if err != nil {
			log.Fatal(err)
		}
		err = locks.Do(ctx, "invoices", func(ctx context.Context, lock *leasehold.Lock) error {
			fmt.Printf("%s: every grant has a token: %v\n", name, l.Capabilities().EveryGrantFenced)
			return ctx.Err()
		})
		if err := errors.Join(err, locks.Close(ctx)); err != nil {
			log.Fatal(err)
		}
	}

	// Output:
	// dynamolock: every grant has a token: false
	// native: every grant has a token: true
}

// This program shares a table with Java clients. The layout contains the names of the
// table's attributes. A call without WithSortKey uses shard 0.
func Example_shareATableWithJava() {
	ctx := context.Background()
	db := openDB(ctx)
	java := layout.AWSLabs{PartitionKey: "lockId", SortKey: "shard", SortValue: "0"}
	if err := table.Create(ctx, db, table.Spec{Name: "LockTable", Layout: java}); err != nil {
		log.Fatal(err)
	}

	locks, err := leasehold.New(db, leasehold.Config{
		Table:           "LockTable",
		Layout:          java,
		DeleteOnRelease: true, // as the Java client does by default
	})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	err = locks.Do(ctx, "order/17", func(ctx context.Context, lock *leasehold.Lock) error {
		fmt.Println(lock.Key())
		return ctx.Err()
	})
	fmt.Println("error:", err)

	// Output:
	// order/17 (0)
	// error: <nil>
}

// This program shares a table with a service that uses python_dynamodb_lock. Records of
// that library do not support all features of leasehold. If a call needs a missing feature,
// it returns an error before it sends a request.
func Example_shareATableWithPython() {
	ctx := context.Background()
	db := openDB(ctx)
	if err := table.Create(ctx, db, table.Spec{Name: "DynamoDBLockTable", Layout: layout.PythonDynamoDBLock{}}); err != nil {
		log.Fatal(err)
	}

	locks, err := leasehold.New(db, leasehold.Config{
		Table:  "DynamoDBLockTable",
		Layout: layout.PythonDynamoDBLock{},
		Lease:  30 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	reason := map[string]types.AttributeValue{"reason": &types.AttributeValueMemberS{Value: "month end"}}
	err = locks.Do(ctx, "invoice/9", func(ctx context.Context, lock *leasehold.Lock) error {
		fmt.Println("held:", lock.Key())
		return ctx.Err()
	}, leasehold.WithSortKey("eu"), leasehold.WithAttributes(reason))
	fmt.Println("error:", err)

	_, err = locks.Acquire(ctx, "invoice/9", leasehold.DeleteOnRelease(false))
	fmt.Println(errors.Is(err, errors.ErrUnsupported), err)

	// Output:
	// held: invoice/9 (eu)
	// error: <nil>
	// true leasehold: layout python-dynamodb-lock in table DynamoDBLockTable, as configured, has no KeepOnRelease
}

// This is the middle stage of a move to another table. Every process acquires the old lock
// first, and then the new one. In the stage before, processes hold only the old lock. In
// the stage after, they hold only the new lock.
//
// Tokens of two tables cannot be compared. So in this stage a fenced target keeps the
// greatest token of each table, and checks both.
func Example_moveToAnotherTable() {
	ctx := context.Background()
	db := openDB(ctx)
	if err := table.Create(ctx, db, table.Spec{Name: "dynamo_dlm_locks", Layout: layout.DynamoDLM{}}); err != nil {
		log.Fatal(err)
	}

	old, err := leasehold.New(db, leasehold.Config{Table: "dynamo_dlm_locks", Layout: layout.DynamoDLM{}})
	if err != nil {
		log.Fatal(err)
	}
	defer old.Close(ctx)
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	err = old.Do(ctx, "invoices", func(ctx context.Context, before *leasehold.Lock) error {
		return locks.Do(ctx, "invoices", func(ctx context.Context, lock *leasehold.Lock) error {
			// ctx ends when either lock is lost.
			fmt.Println("fenced:", before.Token() > 0 && lock.Token() > 0)
			return ctx.Err()
		})
	})
	fmt.Println("error:", err)

	// Output:
	// fenced: true
	// error: <nil>
}
