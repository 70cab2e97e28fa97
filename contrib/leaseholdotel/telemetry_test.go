package leaseholdotel_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/leaseholdotel"
	"github.com/leasehold-go/leasehold/internal/eventtest"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a Telemetry whose metrics and spans stay in memory, where the test reads them.
type rig struct {
	*leaseholdotel.Telemetry
	reader *sdkmetric.ManualReader
	spans  *tracetest.InMemoryExporter
	tracer *sdktrace.TracerProvider
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{reader: sdkmetric.NewManualReader(), spans: tracetest.NewInMemoryExporter()}
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans))
	r.Telemetry = lab.Must(leaseholdotel.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader)), r.tracer))(t)
	return r
}

type sample = eventtest.Sample

func collect(t *testing.T, reader *sdkmetric.ManualReader) []metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	lab.OK(t, reader.Collect(context.WithoutCancel(t.Context()), &all))
	var metrics []metricdata.Metrics
	for _, s := range all.ScopeMetrics {
		metrics = append(metrics, s.Metrics...)
	}
	return metrics
}

// samples returns the samples of a reader as a map. A key of the map consists of the
// metric's name and the values of the attributes, such as name{value}.
func samples(t *testing.T, reader *sdkmetric.ManualReader) map[string]sample {
	t.Helper()
	all := map[string]sample{}
	for _, m := range collect(t, reader) {
		add := func(attributes attribute.Set, s sample) {
			name := m.Name
			for _, a := range attributes.ToSlice() {
				name += "{" + a.Value.AsString() + "}"
			}
			all[name] = s
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, sample{Value: float64(p.Value)})
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, sample{Value: p.Value})
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, sample{Value: p.Sum, Count: p.Count})
			}
		default:
			t.Errorf("%s is a %T", m.Name, data)
		}
	}
	return all
}

func TestMetricsShowEventCountsAndClientStats(t *testing.T) {
	eventtest.Exercise(t, func(t *testing.T) eventtest.Metrics {
		rig := newRig(t)
		watch := func(c *leasehold.Client) { lab.OK(t, rig.Watch(c)) }
		return eventtest.Metrics{OnEvent: rig.OnEvent, Watch: watch, Series: func() map[string]sample {
			series := map[string]sample{}
			for name, s := range samples(t, rig.reader) {
				series[strings.TrimPrefix(name, "leasehold.")] = s
			}
			return series
		}}
	})
}

func TestTelemetryWatchRejectsNilClient(t *testing.T) {
	lab.WantFailed(t, "watch of a nil client", newRig(t).Watch(nil))
}

func TestCountersStartAtZero(t *testing.T) {
	got := samples(t, newRig(t).reader)
	eventtest.Want(t, got, map[string]sample{
		"leasehold.grants{free}": {}, "leasehold.grants{taken_over}": {}, "leasehold.grants{handed_over}": {},
		"leasehold.lost{expired}": {}, "leasehold.lost{paused}": {}, "leasehold.lost{replaced}": {}, "leasehold.lost{broken}": {},
		"leasehold.renew_errors": {}, "leasehold.throttled": {}, "leasehold.requests": {}, "leasehold.wait_errors": {}, "leasehold.gave_up": {}, "leasehold.done": {}, "leasehold.release_errors": {},
		"leasehold.commits{landed}": {}, "leasehold.commits{failed}": {}, "leasehold.commits{lost}": {}, "leasehold.commits{unknown}": {}, "leasehold.commits{refused}": {},
	})
}

func TestPrometheusMetricNamesEqualThoseOfLeaseholdprom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t)
		w := eventtest.New(t)
		c, _ := w.Client(rig.OnEvent)
		lab.OK(t, rig.Watch(c))
		lock := w.Acquire(t.Context(), c, "job")
		time.Sleep(5 * time.Minute) // long enough for at least one renewal
		w.Release(lock)
		w.Acquire(t.Context(), c, "job")
		namer := otlptranslator.MetricNamer{WithMetricSuffixes: true}
		names := map[string]bool{}
		for _, m := range collect(t, rig.reader) {
			kind := otlptranslator.MetricType(otlptranslator.MetricTypeGauge)
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				kind = otlptranslator.MetricTypeHistogram
			case metricdata.Sum[int64]:
				if kind = otlptranslator.MetricTypeNonMonotonicCounter; data.IsMonotonic {
					kind = otlptranslator.MetricTypeMonotonicCounter
				}
			}
			name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: kind})
			if err != nil || m.Description == "" {
				t.Errorf("%s: %v", m.Name, err)
			}
			names[name] = true
		}
		all := []string{
			"leasehold_acquire_seconds", "leasehold_held_seconds", "leasehold_renew_seconds", "leasehold_grants_total", "leasehold_lost_total",
			"leasehold_renew_errors_total", "leasehold_region_moves_total", "leasehold_throttled_total", "leasehold_requests_total",
			"leasehold_wait_errors_total", "leasehold_gave_up_total", "leasehold_done_total", "leasehold_commits_total", "leasehold_release_errors_total",
			"leasehold_held", "leasehold_waiting", "leasehold_min_remaining_seconds",
		}
		for _, name := range all {
			lab.Want(t, "there is a metric "+name, names[name], true)
		}
		lab.Want(t, "number of metrics", len(names), len(all))
		lab.OK(t, c.Close(t.Context()))
	})
}

// The function "early" calls New with nil providers, and sets OpenTelemetry's global providers only
// afterwards. It runs once in a process, because OpenTelemetry connects a Telemetry only to the
// first global providers that are set.
var early = sync.OnceValues(func() (*rig, error) {
	telemetry, err := leaseholdotel.New(nil, nil)
	r := &rig{Telemetry: telemetry, reader: sdkmetric.NewManualReader(), spans: tracetest.NewInMemoryExporter()}
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader)))
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans)))
	return r, err
})

func TestTelemetryUsesGlobalProvidersSetAfterItsCreation(t *testing.T) {
	rig := lab.Must(early())(t)
	before := samples(t, rig.reader) // with go test -count=2, the series still contain the values of the previous run
	rig.spans.Reset()
	c, _ := eventtest.New(t).Client(rig.OnEvent)
	lab.OK(t, rig.Watch(c))
	lab.OK(t, c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }))
	eventtest.Want(t, samples(t, rig.reader), map[string]sample{
		"leasehold.grants{free}": {Value: before["leasehold.grants{free}"].Value + 1},
		"leasehold.requests":     {Value: before["leasehold.requests"].Value + 2},
		"leasehold.lost{broken}": {}, "leasehold.held": {},
	})
	lab.Want(t, "spans", len(rig.spans.GetSpans()), 2)
}

func TestWatchCanBeCalledWhileMetricsAreCollected(t *testing.T) {
	rig := newRig(t)
	w := eventtest.New(t)
	var working sync.WaitGroup
	for range 4 {
		c, _ := w.Client(rig.OnEvent)
		working.Go(func() {
			for range 50 {
				lab.OK(t, rig.Watch(c))
			}
			lab.OK(t, c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }))
		})
	}
	for range 50 {
		samples(t, rig.reader)
	}
	working.Wait()
	lab.Want(t, "counted acquires", samples(t, rig.reader)["leasehold.acquire_seconds"].Count, 4)
}
