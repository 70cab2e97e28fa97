package leaseholdprom

import (
	"maps"
	"sync"
	"weak"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-go/leasehold"
)

// Watch exports the client's Stats as gauges.
//
// Those of several clients are one: the sums of held and waiting, the shortest
// of the remaining times. With nothing held there is no sample of the last:
// zero would mean that trust has run out. A client that is closed adds nothing,
// one that nobody uses any more is forgotten.
func (m *Metrics) Watch(c *leasehold.Client) { m.watched.add(c) }

// watched collects the gauges of clients. It does not keep them alive: one that
// holds locks or waits for some is kept by its own work.
type watched struct {
	held, waiting, remaining *prometheus.Desc

	mu      sync.Mutex // guards what follows; not held while clients are asked
	any     bool       // some client has been watched
	clients map[weak.Pointer[leasehold.Client]]bool
}

func newWatched() *watched {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &watched{
		held:      desc("leasehold_held", "Locks held."),
		waiting:   desc("leasehold_waiting", "Calls that wait to be granted a lock."),
		remaining: desc("leasehold_min_remaining_seconds", "Shortest time until a held lock is not trusted any more; none if none is held."),
		clients:   map[weak.Pointer[leasehold.Client]]bool{},
	}
}

func (w *watched) add(c *leasehold.Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.any, w.clients[weak.Make(c)] = true, true
}

// living returns the clients that are in use, and forgets the others; false:
// there never was one.
func (w *watched) living() ([]*leasehold.Client, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var living []*leasehold.Client
	maps.DeleteFunc(w.clients, func(p weak.Pointer[leasehold.Client], _ bool) bool {
		c := p.Value()
		if c != nil {
			living = append(living, c)
		}
		return c == nil
	})
	return living, w.any
}

// Describe implements prometheus.Collector.
func (w *watched) Describe(ch chan<- *prometheus.Desc) {
	ch <- w.held
	ch <- w.waiting
	ch <- w.remaining
}

// Collect implements prometheus.Collector.
func (w *watched) Collect(ch chan<- prometheus.Metric) {
	clients, watching := w.living()
	if !watching {
		return // no locks held is not what is known
	}
	var sum leasehold.Stats
	for _, c := range clients {
		s := c.Stats()
		if s.Held > 0 && (sum.Held == 0 || s.MinRemaining < sum.MinRemaining) {
			sum.MinRemaining = s.MinRemaining
		}
		sum.Held += s.Held
		sum.Waiting += s.Waiting
	}
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	gauge(w.held, float64(sum.Held))
	gauge(w.waiting, float64(sum.Waiting))
	if sum.Held > 0 {
		gauge(w.remaining, sum.MinRemaining.Seconds())
	}
}
