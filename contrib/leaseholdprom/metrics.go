// Package leaseholdprom exports leasehold's events to Prometheus. It is a separate module,
// so that leasehold does not depend on Prometheus.
//
//	m := leaseholdprom.New(prometheus.DefaultRegisterer, nil)
//	locks, err := leasehold.New(db, leasehold.Config{Table: "locks", OnEvent: m.OnEvent})
//	...
//	m.Watch(locks)
//
// The project's docs/metrics.md explains each metric and what to alert on, and has
// a Grafana dashboard.
package leaseholdprom

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/internal/metrics"
)

// Metrics is a set of Prometheus metrics: leasehold_acquire_seconds,
// leasehold_held_seconds, leasehold_renew_seconds (histograms),
// leasehold_grants_total{how}, leasehold_lost_total{reason}, leasehold_renew_errors_total,
// leasehold_throttled_total, leasehold_wait_errors_total, leasehold_gave_up_total,
// leasehold_done_total, leasehold_requests_total, leasehold_commits_total{outcome},
// leasehold_release_errors_total, leasehold_region_moves_total (counters). For the clients
// given to Watch it also contains leasehold_held, leasehold_waiting,
// leasehold_min_remaining_seconds, leasehold_region_clients{region} (gauges).
//
// The label "how" is "free", "taken_over" (from a dead holder) or "handed_over" (by another
// goroutine of the same client). The label "reason" is a leasehold.LostReason. The label
// "outcome" is "landed", "failed" (the caller's own condition on a write failed), "lost",
// "unknown" or "refused". At the first event of a group (see New), all series of the group
// are created at zero.
//
// Metrics is safe for concurrent use. Several clients may share one Metrics, which then
// shows their sums. To distinguish clients, create one Metrics for each client, with a
// registerer from prometheus.WrapRegistererWith.
type Metrics struct {
	group      func(leasehold.Key) string
	histograms map[*metrics.Metric]*prometheus.HistogramVec
	counters   map[*metrics.Metric]*prometheus.CounterVec
	groups     sync.Map // maps the name of each group to its *series
	watched    *watched
}

// New registers the metrics with reg, or with no registry if reg is nil. Call New once per
// registry, and share the result between all clients. Like promauto, New panics if reg
// already has metrics with these names.
//
// The function "group" returns the value of the label "group" for a key. If group is nil, the
// metrics have no such label. The function must not return the key itself, because a program may
// use millions of keys. OnEvent calls group for every event, on the goroutine that reports the
// event, so group must not block. With Config.SharedLease, group is also called for the keys of
// sessions, which begin with "leasehold/session/".
func New(reg prometheus.Registerer, group func(leasehold.Key) string) *Metrics {
	m := &Metrics{
		group:      group,
		histograms: map[*metrics.Metric]*prometheus.HistogramVec{},
		counters:   map[*metrics.Metric]*prometheus.CounterVec{},
		watched:    newWatched(),
	}
	all := collectors{m.watched}
	for _, of := range metrics.All() {
		var labels []string
		if group != nil {
			labels = append(labels, "group")
		}
		if of.Label != "" {
			labels = append(labels, of.Label)
		}
		if of.Buckets != nil {
			h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name(of.Name), Help: of.Help, Buckets: of.Buckets}, labels)
			m.histograms[of], all = h, append(all, h)
		} else {
			c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name(of.Name) + "_total", Help: of.Help}, labels)
			m.counters[of], all = c, append(all, c)
		}
	}
	if group == nil {
		m.seriesOf(leasehold.Key{})
	}
	if reg != nil {
		reg.MustRegister(all)
	}
	return m
}

// name returns a metric's name with underscores instead of dots, as Prometheus requires.
func name(dotted string) string { return strings.ReplaceAll(dotted, ".", "_") }

// collectors is a list of collectors that are registered together or not at all.
type collectors []prometheus.Collector

func (cs collectors) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range cs {
		c.Describe(ch)
	}
}

func (cs collectors) Collect(ch chan<- prometheus.Metric) {
	for _, c := range cs {
		c.Collect(ch)
	}
}

// OnEvent records an event. Use it as Config.OnEvent.
func (m *Metrics) OnEvent(_ context.Context, e leasehold.Event) {
	s := m.seriesOfEvent(e)
	for _, sample := range metrics.Of(e) {
		add, ok := s.adders[adderKey{sample.Of, sample.Label}]
		if !ok { // the metric has no series for this label value yet, because it is not in Metric.Values
			add = m.adder(sample.Of, s.labels, sample.Label)
		}
		add(sample.Value)
	}
}

// seriesOfEvent returns the series of an event's group. EventRegion, which reports that
// requests go to another Region, has no key. It is recorded under the group "".
func (m *Metrics) seriesOfEvent(e leasehold.Event) *series {
	if m.group != nil && e.Kind == leasehold.EventRegion {
		return &series{labels: []string{""}}
	}
	return m.seriesOf(e.Key)
}

// series is the set of metrics of one group.
type series struct {
	labels []string // value of the label "group"; nil if the metrics have no such label
	adders map[adderKey]func(float64)
}

type adderKey struct {
	of    *metrics.Metric
	label string
}

// seriesOf returns the series of a key's group. It creates all series of a group together,
// with the value zero. If a counter appeared only with its first event, Prometheus could
// not compute an increase for that event.
func (m *Metrics) seriesOf(k leasehold.Key) *series {
	var group string
	var labels []string
	if m.group != nil {
		group = strings.ToValidUTF8(m.group(k), "\ufffd") // Prometheus rejects label values that are not valid UTF-8
		labels = []string{group}
	}
	if s, ok := m.groups.Load(group); ok {
		return s.(*series)
	}
	s := &series{labels, map[adderKey]func(float64){}}
	for _, of := range metrics.All() {
		values := of.Values
		if of.Label == "" {
			values = []string{""}
		}
		for _, value := range values {
			s.adders[adderKey{of, value}] = m.adder(of, labels, value)
		}
	}
	// Another goroutine may just have stored a series for the same group. It is safe to replace
	// that series: both series add to the same counters.
	m.groups.Store(group, s)
	return s
}

// adder returns a function that adds a value to a counter or, for a histogram, observes the
// value.
func (m *Metrics) adder(of *metrics.Metric, labels []string, label string) func(float64) {
	if of.Label != "" {
		labels = append(slices.Clip(labels), label)
	}
	if h := m.histograms[of]; h != nil {
		return h.WithLabelValues(labels...).Observe
	}
	return m.counters[of].WithLabelValues(labels...).Add
}

// Watch exports the client's Stats as gauges. Several clients share one set of gauges: held
// and waiting are sums, min_remaining_seconds is the minimum. If no lock is held,
// min_remaining_seconds has no sample, because 0 would mean that a held lock is no longer
// trusted.
//
// A closed client adds nothing to the gauges. Watch does not prevent the garbage collection
// of a client.
func (m *Metrics) Watch(c *leasehold.Client) { m.watched.clients.Add(c) }

// watched exports the Stats of clients as gauges. It is a prometheus.Collector.
type watched struct {
	held, waiting, remaining, region *prometheus.Desc
	clients                          metrics.Clients
}

func newWatched() *watched {
	desc := func(dotted, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name(dotted), help, labels, nil)
	}
	return &watched{
		held:      desc(metrics.HeldName, metrics.HeldHelp),
		waiting:   desc(metrics.WaitingName, metrics.WaitingHelp),
		remaining: desc(metrics.RemainingName, metrics.RemainingHelp),
		region:    desc(metrics.RegionName, metrics.RegionHelp, "region"),
	}
}

// Describe implements prometheus.Collector.
func (w *watched) Describe(ch chan<- *prometheus.Desc) {
	ch <- w.held
	ch <- w.waiting
	ch <- w.remaining
	ch <- w.region
}

// Collect implements prometheus.Collector.
func (w *watched) Collect(ch chan<- prometheus.Metric) {
	sum, ok := w.clients.Stats()
	if !ok {
		return
	}
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	gauge(w.held, float64(sum.Held))
	gauge(w.waiting, float64(sum.Waiting))
	if sum.Held > 0 {
		gauge(w.remaining, sum.MinRemaining.Seconds())
	}
	for region, n := range w.clients.Regions() {
		ch <- prometheus.MustNewConstMetric(w.region, prometheus.GaugeValue, float64(n), region)
	}
}
