package leaseholdotel_test

import (
	"context"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/leaseholdotel"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// openLocks returns a client that sends its metrics to meters and its spans to tracers.
// Most programs pass nil for both: then the client uses OpenTelemetry's global providers.
func openLocks(db *dynamodb.Client, meters metric.MeterProvider, tracers trace.TracerProvider) (*leasehold.Client, error) {
	t, err := leaseholdotel.New(meters, tracers)
	if err != nil {
		return nil, err
	}
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks", OnEvent: t.OnEvent})
	if err != nil {
		return nil, err
	}
	return locks, t.Watch(locks)
}

func ExampleNew() {
	ctx := context.Background()
	db := localdynamo.New().Client() // on AWS: dynamodb.NewFromConfig(cfg)
	if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil {
		log.Fatal(err)
	}
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	locks, err := openLocks(db, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), tracers)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	caller, span := tracers.Tracer("example").Start(ctx, "report")
	err = locks.Do(caller, "nightly-report", func(ctx context.Context, _ *leasehold.Lock) error { return ctx.Err() })
	if err != nil {
		log.Fatal(err)
	}
	span.End()

	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, "under", s.Parent.SpanID() == span.SpanContext().SpanID())
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if data, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "leasehold.requests" {
			fmt.Println(m.Name, data.DataPoints[0].Value)
		}
	}

	// Output:
	// leasehold.acquire under true
	// leasehold.hold under true
	// report under false
	// leasehold.requests 2
}
