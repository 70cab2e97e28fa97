package leaseholdotel_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/leaseholdotel"
	"github.com/leasehold-go/leasehold/internal/eventtest"
)

// rig is a Telemetry with metrics and spans in memory.
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
	var err error
	r.Telemetry, err = leaseholdotel.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader)), r.tracer)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sample is the state of one series in a reader.
type sample struct {
	value float64 // sum of the observations if the series is a histogram
	count uint64  // number of observations; set only for a histogram
}

func collect(t *testing.T, reader *sdkmetric.ManualReader) []metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.WithoutCancel(t.Context()), &all); err != nil {
		t.Fatal(err)
	}
	var metrics []metricdata.Metrics
	for _, s := range all.ScopeMetrics {
		metrics = append(metrics, s.Metrics...)
	}
	return metrics
}

// samples returns the series of a reader by name and attribute value, such as name{value}.
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
				add(p.Attributes, sample{value: float64(p.Value)})
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, sample{value: p.Value})
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, sample{p.Sum, p.Count})
			}
		default:
			t.Errorf("%s is a %T", m.Name, data)
		}
	}
	return all
}

// want compares the series with the expected ones. It compares times to the millisecond.
func want(t *testing.T, got, want map[string]sample) {
	t.Helper()
	for name, w := range want {
		if g, ok := got[name]; !ok || g.count != w.count || math.Abs(g.value-w.value) > .001*float64(1+w.count) {
			t.Errorf("%s is %v, want %v", name, g, w)
		}
	}
}

func TestMetricsCountEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t)
		life := eventtest.Live(t.Context(), t, rig.OnEvent)
		held := sample{count: uint64(len(life.Held))}
		for _, d := range life.Held {
			held.value += d.Seconds()
		}
		got := samples(t, rig.reader)
		want(t, got, map[string]sample{
			"leasehold.held_seconds":        held,
			"leasehold.renew_errors":        {value: float64(life.RenewErrors)},
			"leasehold.throttled":           {value: float64(life.Throttled)},
			"leasehold.requests":            {value: float64(life.Requests)},
			"leasehold.lost{expired}":       {value: 1},
			"leasehold.lost{paused}":        {},
			"leasehold.lost{replaced}":      {},
			"leasehold.lost{broken}":        {value: 2},
			"leasehold.grants{free}":        {value: 7},
			"leasehold.commits{landed}":     {value: float64(life.Commits["landed"])},
			"leasehold.commits{failed}":     {value: float64(life.Commits["failed"])},
			"leasehold.commits{lost}":       {value: float64(life.Commits["lost"])},
			"leasehold.commits{unknown}":    {value: float64(life.Commits["unknown"])},
			"leasehold.commits{refused}":    {value: float64(life.Commits["refused"])},
			"leasehold.release_errors":      {value: float64(life.Unreleased)},
			"leasehold.done":                {value: float64(life.Done)},
			"leasehold.grants{taken_over}":  {value: 1},
			"leasehold.grants{handed_over}": {value: 1},
		})
		if life.Renewals == 0 || life.RenewErrors == 0 {
			t.Errorf("%d renewals, %d failed ones", life.Renewals, life.RenewErrors)
		}
		if h := got["leasehold.renew_seconds"]; h.count != uint64(life.Renewals) {
			t.Errorf("%v of %d renewals", h, life.Renewals)
		}
		if h := got["leasehold.acquire_seconds"]; h.count != 9 || h.value < 300 { // one call waited until a lease expired
			t.Errorf("acquiring: %v", h)
		}
	})
}

func TestCountersStartAtZero(t *testing.T) {
	got := samples(t, newRig(t).reader)
	want(t, got, map[string]sample{
		"leasehold.grants{free}": {}, "leasehold.grants{taken_over}": {}, "leasehold.grants{handed_over}": {},
		"leasehold.lost{expired}": {}, "leasehold.lost{paused}": {}, "leasehold.lost{replaced}": {}, "leasehold.lost{broken}": {},
		"leasehold.renew_errors": {}, "leasehold.throttled": {}, "leasehold.requests": {}, "leasehold.wait_errors": {}, "leasehold.gave_up": {}, "leasehold.done": {}, "leasehold.release_errors": {},
		"leasehold.commits{landed}": {}, "leasehold.commits{failed}": {}, "leasehold.commits{lost}": {}, "leasehold.commits{unknown}": {}, "leasehold.commits{refused}": {},
	})
}

func TestCommitsAreCountedByOutcome(t *testing.T) {
	rig := newRig(t)
	unknown := &leasehold.OpError{Op: "commit", Err: fmt.Errorf("%w: %w", leasehold.ErrUnknownOutcome, &leasehold.LostError{})}
	for _, err := range []error{nil, &leasehold.CommitError{}, &leasehold.LostError{}, unknown, errors.New("AccessDeniedException")} {
		rig.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventCommitted, Err: err})
	}
	for _, outcome := range []string{"landed", "failed", "lost", "unknown", "refused"} {
		if got := samples(t, rig.reader)["leasehold.commits{"+outcome+"}"]; got != (sample{value: 1}) {
			t.Errorf("%s: %v", outcome, got)
		}
	}
}

func TestPrometheusExporterUsesNamesOfLeaseholdprom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t)
		w := eventtest.New(t)
		c, _ := w.Client(rig.OnEvent)
		if err := rig.Watch(c); err != nil {
			t.Fatal(err)
		}
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
			if !names[name] {
				t.Errorf("no %s", name)
			}
		}
		if len(names) != len(all) {
			t.Errorf("the names are %v", names)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// early creates a Telemetry with the global providers, and sets these providers afterwards.
// A process can do this only once.
var early = sync.OnceValues(func() (*rig, error) {
	telemetry, err := leaseholdotel.New(nil, nil)
	r := &rig{Telemetry: telemetry, reader: sdkmetric.NewManualReader(), spans: tracetest.NewInMemoryExporter()}
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader)))
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans)))
	return r, err
})

func TestNilProviderUsesGlobalProviderThatIsSetLater(t *testing.T) {
	rig, err := early()
	if err != nil {
		t.Fatal(err)
	}
	before := samples(t, rig.reader) // with -count, the series still contain the values of the previous run
	rig.spans.Reset()
	c, _ := eventtest.New(t).Client(rig.OnEvent)
	if err := rig.Watch(c); err != nil {
		t.Fatal(err)
	}
	if err := c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }); err != nil {
		t.Fatal(err)
	}
	want(t, samples(t, rig.reader), map[string]sample{
		"leasehold.grants{free}": {value: before["leasehold.grants{free}"].value + 1},
		"leasehold.requests":     {value: before["leasehold.requests"].value + 2},
		"leasehold.lost{broken}": {}, "leasehold.held": {},
	})
	if n := len(rig.spans.GetSpans()); n != 2 {
		t.Errorf("%d spans", n)
	}
}

func TestGaugesCoverAllWatchedClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t)
		if _, ok := samples(t, rig.reader)["leasehold.held"]; ok {
			t.Error("gauges of no client")
		}
		w := eventtest.New(t)
		a, wire := w.Client(rig.OnEvent)
		b, _ := w.Client(rig.OnEvent)
		idle, _ := w.Client(rig.OnEvent)
		notWatched, _ := w.Client(rig.OnEvent)
		for _, c := range []*leasehold.Client{a, b, idle, idle, a} {
			if err := rig.Watch(c); err != nil {
				t.Fatal(err)
			}
		}
		if err := rig.Watch(nil); err == nil {
			t.Error("watches no client")
		}
		want(t, samples(t, rig.reader), map[string]sample{"leasehold.held": {}, "leasehold.waiting": {}})
		if s, ok := samples(t, rig.reader)["leasehold.min_remaining_seconds"]; ok {
			t.Errorf("%v s remain of no lock", s.value)
		}

		for key, c := range map[string]*leasehold.Client{"x": a, "y": a, "z": b, "v": notWatched} {
			w.Acquire(t.Context(), c, key)
		}
		wire.Cut() // from now on, a's locks cannot be renewed
		time.Sleep(2 * time.Minute)
		ctx, stop := context.WithCancel(t.Context())
		waits := make(chan error, 1)
		go func() {
			_, err := b.Acquire(ctx, "v")
			waits <- err
		}()
		synctest.Wait()
		want(t, samples(t, rig.reader), map[string]sample{
			"leasehold.held":                  {value: 3},
			"leasehold.waiting":               {value: 1},
			"leasehold.min_remaining_seconds": {value: 150}, // the lease of 300 s, less the margin and the time elapsed
		})

		stop()
		<-waits
		wire.Mend()
		for _, c := range []*leasehold.Client{a, b, idle, notWatched} {
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		want(t, samples(t, rig.reader), map[string]sample{"leasehold.held": {}, "leasehold.waiting": {}})
	})
}

func TestUnusedWatchedClientIsGarbageCollected(t *testing.T) {
	rig := newRig(t)
	w := eventtest.New(t)
	var client weak.Pointer[leasehold.Client]
	func() {
		c, _ := w.Client(rig.OnEvent)
		client = weak.Make(c)
		if err := rig.Watch(c); err != nil {
			t.Fatal(err)
		}
	}()
	for range 10 { // repeated, as the stack frame of an interrupted goroutine may keep the client alive for a while
		runtime.GC()
	}
	if client.Value() != nil {
		t.Error("it is watched for ever")
	}
	want(t, samples(t, rig.reader), map[string]sample{"leasehold.held": {}})
}

func TestWatchIsSafeDuringCollection(t *testing.T) {
	rig := newRig(t)
	w := eventtest.New(t)
	var working sync.WaitGroup
	for range 4 {
		c, _ := w.Client(rig.OnEvent)
		working.Go(func() {
			for range 50 {
				if err := rig.Watch(c); err != nil {
					t.Error(err)
				}
			}
			if err := c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	for range 50 {
		samples(t, rig.reader)
	}
	working.Wait()
	if got := samples(t, rig.reader); got["leasehold.acquire_seconds"].count != 4 {
		t.Errorf("%v", got)
	}
}

func TestWaitWithUnreachableEndpointIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t)
		w := eventtest.New(t)
		c, wire := w.Client(rig.OnEvent)
		wire.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "job"); err == nil {
			t.Fatal("granted")
		}
		want(t, samples(t, rig.reader), map[string]sample{
			"leasehold.wait_errors":     {value: 3}, // the failure is reported at once, and again after each minute
			"leasehold.gave_up":         {value: 1},
			"leasehold.acquire_seconds": {150, 1},
		})
		wire.Mend()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
