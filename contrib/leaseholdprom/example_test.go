package leaseholdprom_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/leaseholdprom"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// openLocks returns a client with Prometheus metrics. The part of a key before its first
// slash is the value of the label "group". Most programs pass prometheus.DefaultRegisterer
// as reg.
func openLocks(db *dynamodb.Client, reg prometheus.Registerer) (*leasehold.Client, error) {
	m := leaseholdprom.New(reg, func(k leasehold.Key) string {
		group, _, _ := strings.Cut(k.Partition, "/")
		return group
	})
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks", OnEvent: m.OnEvent})
	if err != nil {
		return nil, err
	}
	m.Watch(locks)
	return locks, nil
}

func ExampleNew() {
	ctx := context.Background()
	db := localdynamo.New().Client() // on AWS: dynamodb.NewFromConfig(cfg)
	if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil {
		log.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	locks, err := openLocks(db, reg)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	for _, key := range []string{"customer/7", "customer/42", "nightly-report"} {
		err := locks.Do(ctx, key, func(ctx context.Context, _ *leasehold.Lock) error { return ctx.Err() })
		if err != nil {
			log.Fatal(err)
		}
	}

	page, err := testutil.CollectAndFormat(reg, expfmt.TypeTextPlain, "leasehold_requests_total", "leasehold_held")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(page))

	// Output:
	// # HELP leasehold_held Locks held.
	// # TYPE leasehold_held gauge
	// leasehold_held 0
	// # HELP leasehold_requests_total DynamoDB requests of grants, renewals, commits and releases.
	// # TYPE leasehold_requests_total counter
	// leasehold_requests_total{group="customer"} 4
	// leasehold_requests_total{group="nightly-report"} 2
}
