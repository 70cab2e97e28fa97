package leaseholdprom

import (
	"maps"
	"sync"
	"weak"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-go/leasehold"
)

// Watch exports the client's Stats as gauges. Several clients share one set of
// gauges: held and waiting are sums, min_remaining_seconds is the minimum. If no
// lock is held, the minimum has no sample; zero would mean that trust has run out.
//
// A closed client adds nothing. Watch does not keep a client alive.
func (m *Metrics) Watch(c *leasehold.Client) { m.watched.add(c) }

// watched collects the gauges of clients. Its pointers are weak: a client that
// holds a lock or waits for one is kept alive by its own goroutines.
type watched struct {
	held, waiting, remaining *prometheus.Desc

	mu      sync.Mutex // guards the following fields; not held while Stats are read
	any     bool       // Watch has been called
	clients map[weak.Pointer[leasehold.Client]]bool
}

func newWatched() *watched {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &watched{
		held:      desc("leasehold_held", "Locks held."),
		waiting:   desc("leasehold_waiting", "Calls that wait to be granted a lock."),
		remaining: desc("leasehold_min_remaining_seconds", "Shortest time until a held lock is no longer trusted; no value if none is held."),
		clients:   map[weak.Pointer[leasehold.Client]]bool{},
	}
}

func (w *watched) add(c *leasehold.Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.any, w.clients[weak.Make(c)] = true, true
}

// alive returns the clients that are still in use, and forgets the others. any is
// false if there never was one.
func (w *watched) alive() (alive []*leasehold.Client, any bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.clients, func(p weak.Pointer[leasehold.Client], _ bool) bool {
		c := p.Value()
		if c != nil {
			alive = append(alive, c)
		}
		return c == nil
	})
	return alive, w.any
}

// Describe implements prometheus.Collector.
func (w *watched) Describe(ch chan<- *prometheus.Desc) {
	ch <- w.held
	ch <- w.waiting
	ch <- w.remaining
}

// Collect implements prometheus.Collector.
func (w *watched) Collect(ch chan<- prometheus.Metric) {
	clients, watching := w.alive()
	if !watching {
		return // nothing is known: zero would say that no locks are held
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
