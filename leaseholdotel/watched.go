package leaseholdotel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"weak"

	"go.opentelemetry.io/otel/metric"

	"github.com/leasehold-go/leasehold"
)

// Watch exports the client's Stats as gauges. Several clients share one set of
// gauges: held and waiting are sums, min_remaining_seconds is the minimum. If no
// lock is held, the minimum has no value; zero would mean that trust has run out.
//
// A closed client adds nothing. Watch does not keep a client alive. The error is
// the meter's, or says that c is nil.
func (t *Telemetry) Watch(c *leasehold.Client) error {
	if c == nil {
		return errors.New("leaseholdotel: watch: the client is nil")
	}
	return t.watched.add(c)
}

// watched observes the gauges of clients. Its pointers are weak: a client that
// holds a lock or waits for one is kept alive by its own goroutines.
type watched struct {
	meter         metric.Meter
	held, waiting metric.Int64ObservableUpDownCounter
	remaining     metric.Float64ObservableGauge

	mu         sync.Mutex // guards the following fields; not held while Stats are read
	registered bool
	clients    map[weak.Pointer[leasehold.Client]]bool
}

func newWatched(meter metric.Meter) (*watched, error) {
	held, err1 := meter.Int64ObservableUpDownCounter("leasehold.held", metric.WithUnit("{lock}"), metric.WithDescription("Locks held."))
	waiting, err2 := meter.Int64ObservableUpDownCounter("leasehold.waiting", metric.WithUnit("{call}"), metric.WithDescription("Calls that wait to be granted a lock."))
	remaining, err3 := meter.Float64ObservableGauge("leasehold.min_remaining_seconds", metric.WithUnit("s"),
		metric.WithDescription("Shortest time until a held lock is no longer trusted; no value if none is held."))
	return &watched{meter: meter, held: held, waiting: waiting, remaining: remaining, clients: map[weak.Pointer[leasehold.Client]]bool{}},
		errors.Join(err1, err2, err3)
}

func (w *watched) add(c *leasehold.Client) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.registered { // without a client there is no value, not zero
		if _, err := w.meter.RegisterCallback(w.observe, w.held, w.waiting, w.remaining); err != nil {
			return fmt.Errorf("leaseholdotel: watch: %w", err)
		}
		w.registered = true
	}
	w.clients[weak.Make(c)] = true
	return nil
}

// alive returns the clients that are still in use, and forgets the others.
func (w *watched) alive() []*leasehold.Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	var alive []*leasehold.Client
	maps.DeleteFunc(w.clients, func(p weak.Pointer[leasehold.Client], _ bool) bool {
		c := p.Value()
		if c != nil {
			alive = append(alive, c)
		}
		return c == nil
	})
	return alive
}

func (w *watched) observe(_ context.Context, o metric.Observer) error {
	var sum leasehold.Stats
	for _, c := range w.alive() {
		s := c.Stats()
		if s.Held > 0 && (sum.Held == 0 || s.MinRemaining < sum.MinRemaining) {
			sum.MinRemaining = s.MinRemaining
		}
		sum.Held += s.Held
		sum.Waiting += s.Waiting
	}
	o.ObserveInt64(w.held, int64(sum.Held))
	o.ObserveInt64(w.waiting, int64(sum.Waiting))
	if sum.Held > 0 {
		o.ObserveFloat64(w.remaining, sum.MinRemaining.Seconds())
	}
	return nil
}
