package leaseholdprom_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/leaseholdprom"
	"github.com/leasehold-go/leasehold/internal/eventtest"
)

// sample is the state of one series in a registry.
type sample struct {
	value float64 // sum of the observations if the series is a histogram
	count uint64  // number of observations; set only for a histogram
}

// samples returns the series of a registry by name and label values, such as
// name{value,value}.
func samples(t *testing.T, reg prometheus.Gatherer) map[string]sample {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
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
			all[name] = sample{m.GetCounter().GetValue() + m.GetGauge().GetValue() + h.GetSampleSum(), h.GetSampleCount()}
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

func seconds(ds []time.Duration) sample {
	s := sample{count: uint64(len(ds))}
	for _, d := range ds {
		s.value += d.Seconds()
	}
	return s
}

func TestMetricsCountEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		m := leaseholdprom.New(reg, nil)
		life := eventtest.Live(t.Context(), t, m.OnEvent)
		got := samples(t, reg)
		counts := map[string]sample{
			"leasehold_held_seconds":              seconds(life.Held),
			"leasehold_renew_errors_total":        {value: float64(life.RenewErrors)},
			"leasehold_throttled_total":           {value: float64(life.Throttled)},
			"leasehold_requests_total":            {value: float64(life.Requests)},
			"leasehold_lost_total{expired}":       {value: 1},
			"leasehold_lost_total{paused}":        {value: 0},
			"leasehold_lost_total{replaced}":      {value: 0},
			"leasehold_lost_total{broken}":        {value: 2},
			"leasehold_grants_total{free}":        {value: 7},
			"leasehold_commits_total{landed}":     {value: float64(life.Commits["landed"])},
			"leasehold_commits_total{failed}":     {value: float64(life.Commits["failed"])},
			"leasehold_commits_total{lost}":       {value: float64(life.Commits["lost"])},
			"leasehold_commits_total{unknown}":    {value: float64(life.Commits["unknown"])},
			"leasehold_commits_total{refused}":    {value: float64(life.Commits["refused"])},
			"leasehold_release_errors_total":      {value: float64(life.Unreleased)},
			"leasehold_done_total":                {value: float64(life.Done)},
			"leasehold_grants_total{taken_over}":  {value: 1},
			"leasehold_grants_total{handed_over}": {value: 1},
		}
		want(t, got, counts)
		if life.Renewals == 0 || life.RenewErrors == 0 {
			t.Errorf("%d renewals, %d failed ones", life.Renewals, life.RenewErrors)
		}
		if h := got["leasehold_renew_seconds"]; h.count != uint64(life.Renewals) {
			t.Errorf("%v of %d renewals", h, life.Renewals)
		}
		if h := got["leasehold_acquire_seconds"]; h.count != 9 || h.value < 300 { // one call waited until a lease expired
			t.Errorf("acquiring: %v", h)
		}
	})
}

func TestKeysOfSameGroupShareMetricSeries(t *testing.T) {
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
		want(t, got, map[string]sample{
			"leasehold_acquire_seconds{customer}":   {0, 2},
			"leasehold_held_seconds{customer}":      {2, 2},
			"leasehold_held_seconds{month}":         {1, 1},
			"leasehold_grants_total{customer,free}": {value: 2},
			"leasehold_requests_total{customer}":    {value: 4},
			"leasehold_requests_total{month}":       {value: 2},
		})
		for name := range got {
			if strings.Contains(name, "customer/") {
				t.Errorf("%s names a key", name)
			}
		}
	})
}

// If a counter appears only with its first count, it shows no increase: increase() needs
// two samples. An alert on the first loss would not fire.
func TestCountersStartAtZero(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	leaseholdprom.New(reg, nil)
	got := samples(t, reg)
	grouped := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(grouped, func(leasehold.Key) string { return "g" })
	if n := len(samples(t, grouped)); n != 0 {
		t.Errorf("%d series of no group", n)
	}
	m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventGranted, Requests: 1})
	gotGrouped := samples(t, grouped)
	for _, name := range []string{
		"grants_total{free", "grants_total{taken_over", "grants_total{handed_over",
		"lost_total{expired", "lost_total{paused", "lost_total{replaced", "lost_total{broken",
		"commits_total{landed", "commits_total{failed", "commits_total{lost", "commits_total{unknown", "commits_total{refused", "release_errors_total{",
		"renew_errors_total{", "region_moves_total{", "throttled_total{", "requests_total{", "wait_errors_total{", "gave_up_total{", "done_total{", "acquire_seconds{", "held_seconds{", "renew_seconds{",
	} {
		single := "leasehold_" + strings.TrimSuffix(name+"}", "{}")
		if s, ok := got[single]; !ok || s.value != 0 {
			t.Errorf("%s: %v %v", single, s, ok)
		}
		name, value, _ := strings.Cut(name, "{")
		group := "leasehold_" + name + "{" + strings.TrimSuffix("g,"+value, ",") + "}"
		if _, ok := gotGrouped[group]; !ok {
			t.Errorf("no %s", group)
		}
	}
}

func TestCommitsAreCountedByOutcome(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(reg, nil)
	unknown := &leasehold.OpError{Op: "commit", Err: fmt.Errorf("%w: %w", leasehold.ErrUnknownOutcome, &leasehold.LostError{})}
	for _, err := range []error{nil, &leasehold.CommitError{}, &leasehold.LostError{}, unknown, errors.New("AccessDeniedException")} {
		m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventCommitted, Err: err})
	}
	for _, outcome := range []string{"landed", "failed", "lost", "unknown", "refused"} {
		if got := samples(t, reg)["leasehold_commits_total{"+outcome+"}"]; got != (sample{value: 1}) {
			t.Errorf("%s: %v", outcome, got)
		}
	}
}

func TestMetricsCountMovesBetweenRegions(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(reg, nil)
	m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventRegion, Region: "us-east-2", Err: errors.New("no such host")})
	m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventRegion, Region: "us-east-1"})
	want(t, samples(t, reg), map[string]sample{"leasehold_region_moves_total": {value: 2}})
}

func TestInvalidUTF8InGroupLabelIsReplaced(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(reg, func(k leasehold.Key) string { return k.Partition[:4] })
	m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventGranted, Key: leasehold.Key{Partition: "Müü"}})
	if got := samples(t, reg); got["leasehold_grants_total{Mü\ufffd,free}"].value != 1 {
		t.Errorf("%v", got)
	}
}

func TestEventOfUnknownKindAddsOnlyItsRequests(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(reg, nil)
	before := samples(t, reg)
	m.OnEvent(t.Context(), leasehold.Event{Kind: "new", Took: time.Second, Held: time.Second, Requests: 2, Err: leasehold.ErrLost})
	before["leasehold_requests_total"] = sample{value: 2}
	want(t, samples(t, reg), before)
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

	leaseholdprom.New(nil, nil) // must not panic: without a registry, New registers nothing, as promauto does
	shared := prometheus.NewPedanticRegistry()
	for _, table := range []string{"jobs", "leaders"} {
		leaseholdprom.New(prometheus.WrapRegistererWith(prometheus.Labels{"table": table}, shared), nil)
	}
}

// If one of the metrics cannot be registered, none is.
func TestMetricsAreRegisteredTogetherOrNotAtAll(t *testing.T) {
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
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) != 0 {
		t.Errorf("%v %v", problems, err)
	}
}

func TestScrapeIsSafeWhileClientsWork(t *testing.T) {
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
					if err := c.Do(context.Background(), key, func(context.Context, *leasehold.Lock) error { return nil }); err != nil {
						t.Error(err)
					}
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
		if !strings.Contains(page, line+"\n") {
			t.Errorf("no %s in\n%s", line, page)
		}
	}
}

func TestWaitWithUnreachableEndpointIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		w := eventtest.New(t)
		c, wire := w.Client(leaseholdprom.New(reg, nil).OnEvent)
		wire.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "job"); err == nil {
			t.Fatal("granted")
		}
		want(t, samples(t, reg), map[string]sample{
			"leasehold_wait_errors_total": {value: 3}, // the failure is reported at once, and again after each minute
			"leasehold_gave_up_total":     {value: 1},
			"leasehold_acquire_seconds":   {150, 1},
		})
		wire.Mend()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
