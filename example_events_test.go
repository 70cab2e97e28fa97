package leasehold_test

import (
	"context"
	"fmt"
	"log"
	"sync/atomic"

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
