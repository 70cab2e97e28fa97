package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
)

// Metrics of one's own. For Prometheus and OpenTelemetry there are adapters,
// leaseholdprom and leaseholdotel.
func ExampleConfig_OnEvent() {
	ctx := context.Background()
	var lost, requests atomic.Int64
	locks, err := leasehold.New(openDB(ctx), leasehold.Config{Table: "locks", OnEvent: func(_ context.Context, e leasehold.Event) {
		if e.Kind == leasehold.EventLost {
			lost.Add(1)
		}
		if e.Kind != leasehold.EventThrottled { // in the event of the call as well
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

// The SDK reads a credentials file once, and caches what a credential_process or single
// sign-on has returned. A service whose credentials may be replaced while it holds locks
// invalidates the cache when DynamoDB refuses them.
func ExampleConfig_OnEvent_credentials() {
	ctx := context.Background()
	credentials := aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		now, err := config.LoadDefaultConfig(ctx) // reads the files again
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
			credentials.Invalidate() // the next attempt loads new ones
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
}
