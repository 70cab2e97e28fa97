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

// Watch exports the client's Stats as gauges.
//
// Those of several clients are one: the sums of held and waiting, the shortest
// of the remaining times. With nothing held the last has no value: zero would
// mean that trust has run out. A client that is closed adds nothing, one that
// nobody uses any more is forgotten. The error is the meter's, or says that c is
// nil.
func (t *Telemetry) Watch(c *leasehold.Client) error {
	if c == nil {
		return errors.New("leaseholdotel: watch: the client is nil")
	}
	return t.watched.add(c)
}

// watched observes the gauges of clients. It does not keep them alive: one that
// holds locks or waits for some is kept by its own work.
type watched struct {
	meter         metric.Meter
	held, waiting metric.Int64ObservableUpDownCounter
	remaining     metric.Float64ObservableGauge

	mu         sync.Mutex // guards what follows; not held while clients are asked
	registered bool
	clients    map[weak.Pointer[leasehold.Client]]bool
}

func newWatched(meter metric.Meter) (*watched, error) {
	held, err1 := meter.Int64ObservableUpDownCounter("leasehold.held", metric.WithUnit("{lock}"), metric.WithDescription("Locks held."))
	waiting, err2 := meter.Int64ObservableUpDownCounter("leasehold.waiting", metric.WithUnit("{call}"), metric.WithDescription("Calls that wait to be granted a lock."))
	remaining, err3 := meter.Float64ObservableGauge("leasehold.min_remaining_seconds", metric.WithUnit("s"),
		metric.WithDescription("Shortest time until a held lock is not trusted any more; none if none is held."))
	return &watched{meter: meter, held: held, waiting: waiting, remaining: remaining, clients: map[weak.Pointer[leasehold.Client]]bool{}},
		errors.Join(err1, err2, err3)
}

func (w *watched) add(c *leasehold.Client) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.registered { // until then there is nothing to observe, and zero is not what is known
		if _, err := w.meter.RegisterCallback(w.observe, w.held, w.waiting, w.remaining); err != nil {
			return fmt.Errorf("leaseholdotel: watch: %w", err)
		}
		w.registered = true
	}
	w.clients[weak.Make(c)] = true
	return nil
}

// living returns the clients that are in use, and forgets the others.
func (w *watched) living() []*leasehold.Client {
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
	return living
}

func (w *watched) observe(_ context.Context, o metric.Observer) error {
	var sum leasehold.Stats
	for _, c := range w.living() {
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
