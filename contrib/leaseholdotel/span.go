package leaseholdotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/internal/metrics"
)

// trace creates the OpenTelemetry span of an acquire, a commit or a hold, from the event that
// reports its end. A hold lasts from the grant of a lock to its release or loss.
func (t *Telemetry) trace(ctx context.Context, e leasehold.Event) {
	switch e.Kind {
	case leasehold.EventGranted:
		t.span(ctx, "leasehold.acquire", e, e.Time.Add(-e.Took), e.Time, attribute.String("leasehold.how", metrics.How(e)))
	case leasehold.EventCommitted:
		t.span(ctx, "leasehold.commit", e, e.Time.Add(-e.Took), e.Time)
	case leasehold.EventLost, leasehold.EventReleased:
		if e.Held == 0 {
			return // Held is zero if an earlier event has already created the span of this hold
		}
		end := e.Time.Add(-e.Took) // the hold ends when the release begins
		var more []attribute.KeyValue
		if reason, ok := metrics.LossIn(e); ok {
			more = append(more, attribute.String("leasehold.reason", string(reason)))
		}
		t.span(ctx, "leasehold.hold", e, end.Add(-e.Held), end, more...)
	}
}

// span creates a span with the given start and end. Its parent is the span in ctx.
func (t *Telemetry) span(ctx context.Context, name string, e leasehold.Event, start, end time.Time, more ...attribute.KeyValue) {
	attributes := append(more,
		attribute.String("leasehold.key", e.Key.Partition),
		attribute.Int64("leasehold.token", e.Token),
		attribute.Int("leasehold.requests", e.Requests),
	)
	if e.Key.Sort != "" {
		attributes = append(attributes, attribute.String("leasehold.sort_key", e.Key.Sort))
	}
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(start), trace.WithAttributes(attributes...))
	if e.Err != nil {
		span.RecordError(e.Err, trace.WithTimestamp(end))
		span.SetStatus(codes.Error, e.Err.Error())
	}
	span.End(trace.WithTimestamp(end))
}
