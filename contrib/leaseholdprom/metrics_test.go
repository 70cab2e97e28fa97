package leaseholdprom_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/leaseholdprom"
	"github.com/leasehold-go/leasehold/internal/eventtest"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type sample = eventtest.Sample

// samples returns the samples of a registry as a map. A key of the map consists of the
// metric's name and the values of the labels, such as name{value,value}.
func samples(t *testing.T, reg prometheus.Gatherer) map[string]sample {
	t.Helper()
	families := lab.Must(reg.Gather())(t)
	all := map[string]sample{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			name := f.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			h := m.GetHistogram()
			all[name] = sample{Value: m.GetCounter().GetValue() + m.GetGauge().GetValue() + h.GetSampleSum(), Count: h.GetSampleCount()}
		}
	}
	return all
}

func TestMetricsShowEventCountsAndClientStats(t *testing.T) {
	eventtest.Exercise(t, func(t *testing.T) eventtest.Metrics {
		reg := prometheus.NewPedanticRegistry()
		m := leaseholdprom.New(reg, nil)
		return eventtest.Metrics{OnEvent: m.OnEvent, Watch: m.Watch, Series: func() map[string]sample {
			series := map[string]sample{}
			for name, s := range samples(t, reg) {
				series[strings.Replace(strings.TrimPrefix(name, "leasehold_"), "_total", "", 1)] = s
			}
			return series
		}}
	})
}

func TestKeysWithSameGroupLabelShareMetricSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		m := leaseholdprom.New(reg, func(k leasehold.Key) string {
			group, _, _ := strings.Cut(k.Partition, "/")
			return group
		})
		w := eventtest.New(t)
		c, _ := w.Client(m.OnEvent)
		for _, key := range []string{"customer/1", "customer/2", "month"} {
			lock := w.Acquire(t.Context(), c, key)
			time.Sleep(time.Second)
			w.Release(lock)
		}
		got := samples(t, reg)
		eventtest.Want(t, got, map[string]sample{
			"leasehold_acquire_seconds{customer}":   {Value: 0, Count: 2},
			"leasehold_held_seconds{customer}":      {Value: 2, Count: 2},
			"leasehold_held_seconds{month}":         {Value: 1, Count: 1},
			"leasehold_grants_total{customer,free}": {Value: 2},
			"leasehold_requests_total{customer}":    {Value: 4},
			"leasehold_requests_total{month}":       {Value: 2},
		})
		for name := range got {
			lab.WantNoPart(t, "a metric", name, "customer/")
		}
	})
}

// A counter must exist before its first count. A counter that appears with its first count has one
// sample, but PromQL's increase() needs two. So an alert on the first lost lock would not fire.
func TestCountersStartAtZero(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	leaseholdprom.New(reg, nil)
	got := samples(t, reg)
	grouped := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(grouped, func(leasehold.Key) string { return "g" })
	lab.Want(t, "series before the first event", len(samples(t, grouped)), 0)
	m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventGranted, Requests: 1})
	gotGrouped := samples(t, grouped)
	for _, name := range []string{
		"grants_total{free", "grants_total{taken_over", "grants_total{handed_over",
		"lost_total{expired", "lost_total{paused", "lost_total{replaced", "lost_total{broken",
		"commits_total{landed", "commits_total{failed", "commits_total{lost", "commits_total{unknown", "commits_total{refused", "release_errors_total{",
		"renew_errors_total{", "region_moves_total{", "throttled_total{", "requests_total{", "wait_errors_total{", "gave_up_total{", "done_total{", "acquire_seconds{", "held_seconds{", "renew_seconds{",
	} {
		single := "leasehold_" + strings.TrimSuffix(name+"}", "{}")
		if s, ok := got[single]; !ok || s.Value != 0 {
			t.Errorf("%s: %v %v", single, s, ok)
		}
		name, value, _ := strings.Cut(name, "{")
		group := "leasehold_" + name + "{" + strings.TrimSuffix("g,"+value, ",") + "}"
		_, ok := gotGrouped[group]
		lab.Want(t, "there is a series "+group, ok, true)
	}
}

func TestRegionSwitchMetricHasEmptyGroupLabel(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(reg, func(k leasehold.Key) string { return k.Partition[:4] })
	for range 2 {
		m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventRegion, Region: "us-east-2"})
	}
	eventtest.Want(t, samples(t, reg), map[string]sample{"leasehold_region_moves_total{}": {Value: 2}})
}

func TestInvalidUTF8InGroupLabelIsReplaced(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(reg, func(k leasehold.Key) string { return k.Partition[:4] })
	m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventGranted, Key: leasehold.Key{Partition: "Müü"}})
	lab.Want(t, "grants", samples(t, reg)["leasehold_grants_total{Mü\ufffd,free}"].Value, 1)
}

func TestEventOfUnknownKindIncreasesOnlyRequestCounter(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(reg, nil)
	before := samples(t, reg)
	m.OnEvent(t.Context(), leasehold.Event{Kind: "new", Took: time.Second, Held: time.Second, Requests: 2, Err: leasehold.ErrLost})
	before["leasehold_requests_total"] = sample{Value: 2}
	eventtest.Want(t, samples(t, reg), before)
}

func TestNewPanicsIfMetricsAreAlreadyRegistered(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	leaseholdprom.New(reg, nil)
	var recovered any
	func() {
		defer func() { recovered = recover() }()
		leaseholdprom.New(reg, nil)
	}()
	if err, ok := recovered.(prometheus.AlreadyRegisteredError); !ok {
		t.Errorf("%v", err)
	}

	leaseholdprom.New(nil, nil) // must not panic: if the registry is nil, New registers nothing, like promauto
	shared := prometheus.NewPedanticRegistry()
	for _, table := range []string{"jobs", "leaders"} {
		leaseholdprom.New(prometheus.WrapRegistererWith(prometheus.Labels{"table": table}, shared), nil)
	}
}

// If one of the metrics cannot be registered, New registers none of them.
func TestNewRegistersNoMetricsIfItFails(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	theirs := prometheus.NewGauge(prometheus.GaugeOpts{Name: "leasehold_waiting", Help: "Calls that wait to be granted a lock."})
	reg.MustRegister(theirs)
	func() {
		defer func() { _ = recover() }()
		leaseholdprom.New(reg, nil)
	}()
	reg.Unregister(theirs)
	leaseholdprom.New(reg, nil)
}

func TestMetricNamesFollowPrometheusConventions(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(reg, nil)
	c, _ := eventtest.New(t).Client(m.OnEvent)
	m.Watch(c)
	lab.Want(t, "problems", lab.Must(testutil.GatherAndLint(reg))(t), nil)
}

func TestMetricsCanBeScrapedWhileClientsWork(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := leaseholdprom.New(reg, func(k leasehold.Key) string { return k.Partition[:1] })
	w := eventtest.New(t)
	server := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	scrape := func() string {
		res, err := server.Client().Get(server.URL)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %v", res.Status, body, err)
		}
		return string(body)
	}
	var working sync.WaitGroup
	for range 2 {
		c, _ := w.Client(m.OnEvent)
		m.Watch(c)
		for _, key := range []string{"a", "b", "c"} {
			working.Go(func() {
				for range 10 {
					lab.OK(t, c.Do(context.Background(), key, func(context.Context, *leasehold.Lock) error { return nil }))
				}
			})
		}
	}
	for range 10 {
		scrape()
	}
	working.Wait()
	page := scrape()
	for _, line := range []string{
		`leasehold_acquire_seconds_count{group="a"} 20`, `leasehold_held_seconds_count{group="c"} 20`,
		`leasehold_lost_total{group="b",reason="broken"} 0`, "leasehold_held 0", "leasehold_waiting 0",
		"# TYPE leasehold_held_seconds histogram", "# TYPE leasehold_requests_total counter", "# TYPE leasehold_held gauge",
	} {
		lab.WantParts(t, "the page", page, line+"\n")
	}
}
