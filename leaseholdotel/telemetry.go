// Package leaseholdotel exports leasehold's events to OpenTelemetry. It is a
// module of its own, so that leasehold does not depend on OpenTelemetry.
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
)

const scope = "github.com/leasehold-go/leasehold/leaseholdotel"

// Telemetry records metrics, and a span under the caller's span for each acquire,
// hold and commit.
//
// The metrics are leasehold.acquire_seconds, leasehold.held_seconds,
// leasehold.renew_seconds (histograms), leasehold.grants{how},
// leasehold.lost{reason}, leasehold.renew_errors, leasehold.throttled,
// leasehold.wait_errors, leasehold.gave_up, leasehold.done, leasehold.requests,
// leasehold.commits{outcome}, leasehold.release_errors (counters) and,
// for watched clients, leasehold.held, leasehold.waiting (up-down counters) and
// leasehold.min_remaining_seconds (gauge). A Prometheus exporter turns these into
// the names of leaseholdprom.
//
// The spans are leasehold.acquire, leasehold.hold and leasehold.commit. Each is
// made when what it shows has ended, with the times when that started and ended.
// Keys are attributes of spans, never of metrics: there may be millions.
//
// Telemetry is safe for concurrent use. Several clients may share it: their values
// add up.
type Telemetry struct {
	tracer trace.Tracer

	acquire, held, renew                           metric.Float64Histogram
	grants, lost, renewErrors, throttled, requests metric.Int64Counter
	waitErrors, gaveUp, commits, unreleased        metric.Int64Counter
	done                                           metric.Int64Counter

	first   sync.Once // initializes the counters at the first event
	watched *watched
}

// Buckets, in seconds, the same as in leaseholdprom. An OpenTelemetry view can
// change them.
var (
	acquireBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600}
	heldBuckets    = []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600}
	renewBuckets   = []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
)

// New creates the instruments. A nil provider is the global one, which may be set
// after New.
func New(m metric.MeterProvider, t trace.TracerProvider) (*Telemetry, error) {
	if m == nil {
		m = otel.GetMeterProvider()
	}
	if t == nil {
		t = otel.GetTracerProvider()
	}
	meter := m.Meter(scope)
	var errs []error
	histogram := func(name, description string, buckets []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(buckets...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	out := &Telemetry{
		tracer:      t.Tracer(scope),
		acquire:     histogram("leasehold.acquire_seconds", "Time from the call to the grant, or to giving up, waiting included.", acquireBuckets),
		held:        histogram("leasehold.held_seconds", "Time from the grant to the release or the loss.", heldBuckets),
		renew:       histogram("leasehold.renew_seconds", "Time that a successful renewal took.", renewBuckets),
		grants:      counter("leasehold.grants", "{grant}", "Grants: of a free key, taken over from a dead holder, or handed over inside the process."),
		lost:        counter("leasehold.lost", "{lock}", "Locks lost while they were held."),
		renewErrors: counter("leasehold.renew_errors", "{renewal}", "Renewals that failed; they are retried while the lock is trusted."),
		throttled:   counter("leasehold.throttled", "{request}", "Requests that DynamoDB throttled; they are retried."),
		waitErrors:  counter("leasehold.wait_errors", "{wait}", "Waits whose requests fail: counted once per wait, and then once a minute."),
		gaveUp:      counter("leasehold.gave_up", "{call}", "Calls of Acquire that ended without a grant."),
		done:        counter("leasehold.done", "{call}", "Calls with Once or Every that were granted nothing, as their work was done."),
		requests:    counter("leasehold.requests", "{request}", "DynamoDB requests of grants, renewals, commits and releases."),
		commits:     counter("leasehold.commits", "{commit}", "Commits, by what became of their writes."),
		unreleased:  counter("leasehold.release_errors", "{release}", "Releases that failed: the lease frees the key."),
	}
	watched, err := newWatched(meter)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("leaseholdotel: %w", err)
	}
	out.watched = watched
	out.startAtZero()
	return out, nil
}

// startAtZero makes every counter visible with the value 0. A counter that
// appeared with its first loss would show no increase.
func (t *Telemetry) startAtZero() {
	ctx := context.Background()
	for _, how := range []string{free, takenOver, handedOver} {
		t.grants.Add(ctx, 0, howIs(how))
	}
	for _, reason := range []leasehold.LostReason{leasehold.LostExpired, leasehold.LostPaused, leasehold.LostReplaced, leasehold.LostBroken} {
		t.lost.Add(ctx, 0, reasonIs(reason))
	}
	for _, outcome := range outcomes {
		t.commits.Add(ctx, 0, outcomeIs(outcome))
	}
	for _, c := range []metric.Int64Counter{t.renewErrors, t.throttled, t.waitErrors, t.gaveUp, t.done, t.requests, t.unreleased} {
		c.Add(ctx, 0)
	}
}

// OnEvent is the function for Config.OnEvent.
func (t *Telemetry) OnEvent(ctx context.Context, e leasehold.Event) {
	t.first.Do(t.startAtZero) // once more: the global provider may have been set after New
	t.measure(ctx, e)
	t.trace(ctx, e)
}

func (t *Telemetry) measure(ctx context.Context, e leasehold.Event) {
	switch e.Kind {
	case leasehold.EventGranted:
		t.acquire.Record(ctx, e.Took.Seconds())
		t.grants.Add(ctx, 1, howIs(howOf(e)))
	case leasehold.EventGaveUp:
		t.acquire.Record(ctx, e.Took.Seconds())
		t.gaveUp.Add(ctx, 1)
	case leasehold.EventDone:
		t.done.Add(ctx, 1)
	case leasehold.EventWaitError:
		t.waitErrors.Add(ctx, 1)
	case leasehold.EventRenewed:
		t.renew.Record(ctx, e.Took.Seconds())
	case leasehold.EventRenewError:
		t.renewErrors.Add(ctx, 1)
	case leasehold.EventThrottled:
		t.throttled.Add(ctx, 1)
		return // the request is counted in the event of the call that it belongs to
	case leasehold.EventCommitted:
		t.commits.Add(ctx, 1, outcomeIs(outcomeOf(e.Err)))
	case leasehold.EventLost, leasehold.EventReleased:
		if reason, ok := lossIn(e); ok {
			t.lost.Add(ctx, 1, reasonIs(reason))
		}
		if e.Err != nil && !errors.Is(e.Err, leasehold.ErrLost) {
			t.unreleased.Add(ctx, 1)
		}
		if e.Held > 0 {
			t.held.Record(ctx, e.Held.Seconds())
		}
	}
	t.requests.Add(ctx, int64(e.Requests))
}

// lossIn returns the reason why a lock was lost, false if the event shows no loss
// or one that was counted before. A release may be the first to find the loss. Only
// the first event that ends a grant has Held above zero: a released event without
// it follows a loss, or a release that had no answer.
func lossIn(e leasehold.Event) (leasehold.LostReason, bool) {
	var lost *leasehold.LostError
	if !errors.As(e.Err, &lost) || e.Kind == leasehold.EventReleased && e.Held == 0 {
		return "", false
	}
	return lost.Reason, true
}

// Values of the attribute "how".
const (
	free       = "free"
	takenOver  = "taken_over"
	handedOver = "handed_over"
)

func howOf(e leasehold.Event) string {
	switch {
	case e.Local:
		return handedOver
	case e.TookOver:
		return takenOver
	}
	return free
}

// Values of the attribute "outcome".
const (
	landed  = "landed"
	failed  = "failed"  // a write's own condition
	lost    = "lost"    // the grant had ended
	unknown = "unknown" // the writes may have landed
	refused = "refused" // by DynamoDB, or never sent
)

var outcomes = []string{landed, failed, lost, unknown, refused}

// outcomeOf says what became of the writes of a commit.
func outcomeOf(err error) string {
	var write *leasehold.CommitError
	switch {
	case err == nil:
		return landed
	case errors.Is(err, leasehold.ErrUnknownOutcome): // whatever else is known
		return unknown
	case errors.Is(err, leasehold.ErrLost):
		return lost
	case errors.As(err, &write):
		return failed
	}
	return refused
}

func outcomeIs(outcome string) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", outcome)))
}

func howIs(how string) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("how", how)))
}

func reasonIs(reason leasehold.LostReason) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", string(reason))))
}
