// Package leaseholdotel exports leasehold's events to OpenTelemetry. It is a separate
// module, so that leasehold does not depend on OpenTelemetry.
//
//	t, err := leaseholdotel.New(nil, nil)
//	...
//	locks, err := leasehold.New(db, leasehold.Config{Table: "locks", OnEvent: t.OnEvent})
//	...
//	err = t.Watch(locks)
//
// The project's docs/metrics.md explains each metric and span, and what to alert
// on.
package leaseholdotel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/internal/metrics"
)

const scope = "github.com/leasehold-go/leasehold/contrib/leaseholdotel"

// Telemetry records metrics and spans. Each acquire, hold and commit gets a span, whose
// parent is the span in the context of the call.
//
// The metrics are leasehold.acquire_seconds, leasehold.held_seconds,
// leasehold.renew_seconds (histograms), leasehold.grants{how}, leasehold.lost{reason},
// leasehold.renew_errors, leasehold.throttled, leasehold.wait_errors, leasehold.gave_up,
// leasehold.done, leasehold.requests, leasehold.commits{outcome}, leasehold.release_errors,
// leasehold.region_moves (counters) and, for watched clients, leasehold.held,
// leasehold.waiting, leasehold.region_clients{region} (up-down counters) and
// leasehold.min_remaining_seconds (gauge). An OpenTelemetry exporter for Prometheus turns
// these into the names that package leaseholdprom uses.
//
// The spans are leasehold.acquire, leasehold.hold and leasehold.commit. Each is created
// when its operation has ended, with the times of its start and end. Keys are attributes of
// spans, never of metrics, because a program may use millions of keys.
//
// Telemetry is safe for concurrent use. Several clients may share it: their values
// add up.
type Telemetry struct {
	tracer  trace.Tracer
	adders  map[*metrics.Metric]func(context.Context, metrics.Sample)
	first   sync.Once // startAtZero runs again at the first event: see OnEvent
	watched *watched
}

// New creates the instruments. If a provider is nil, New uses the global provider of
// OpenTelemetry. The program may set the global provider after it calls New.
func New(m metric.MeterProvider, t trace.TracerProvider) (*Telemetry, error) {
	if m == nil {
		m = otel.GetMeterProvider()
	}
	if t == nil {
		t = otel.GetTracerProvider()
	}
	meter := m.Meter(scope)
	out := &Telemetry{tracer: t.Tracer(scope), adders: map[*metrics.Metric]func(context.Context, metrics.Sample){}}
	var errs []error
	for _, of := range metrics.All() {
		add, err := newAdder(meter, of)
		out.adders[of], errs = add, append(errs, err)
	}
	watched, err := newWatched(meter)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("leaseholdotel: %w", err)
	}
	out.watched = watched
	out.startAtZero()
	return out, nil
}

// newAdder creates the instrument of a metric. It returns a function that records a sample with
// this instrument.
func newAdder(meter metric.Meter, of *metrics.Metric) (func(context.Context, metrics.Sample), error) {
	if of.Buckets != nil {
		h, err := meter.Float64Histogram(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Help), metric.WithExplicitBucketBoundaries(of.Buckets...))
		return func(ctx context.Context, s metrics.Sample) { h.Record(ctx, s.Value) }, err
	}
	c, err := meter.Int64Counter(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Help))
	return func(ctx context.Context, s metrics.Sample) {
		if of.Label == "" {
			c.Add(ctx, int64(s.Value))
			return
		}
		c.Add(ctx, int64(s.Value), metric.WithAttributeSet(attribute.NewSet(attribute.String(of.Label, s.Label))))
	}, err
}

// startAtZero exports every counter with the value 0. If a counter appeared only with its
// first event, a monitoring system could not compute an increase for that event.
func (t *Telemetry) startAtZero() {
	for _, of := range metrics.All() {
		values := of.Values
		switch {
		case of.Buckets != nil:
			continue
		case of.Label == "":
			values = []string{""}
		}
		for _, value := range values {
			t.adders[of](context.Background(), metrics.Sample{Of: of, Label: value})
		}
	}
}

// OnEvent records an event. Use it as Config.OnEvent.
func (t *Telemetry) OnEvent(ctx context.Context, e leasehold.Event) {
	t.first.Do(t.startAtZero) // startAtZero runs a second time, because the program may have set the global provider after New
	for _, s := range metrics.Of(e) {
		t.adders[s.Of](ctx, s)
	}
	t.trace(ctx, e)
}
