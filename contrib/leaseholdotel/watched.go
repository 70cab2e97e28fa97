package leaseholdotel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/internal/metrics"
)

// Watch exports the client's Stats as gauges. Several clients share one set of gauges: held
// and waiting are sums, min_remaining_seconds is the minimum. If no lock is held,
// min_remaining_seconds has no value, because 0 would mean that a held lock is no longer
// trusted.
//
// A closed client adds nothing to the gauges. Watch does not prevent the garbage collection
// of a client. It returns an error if c is nil, or if the meter cannot register the gauges.
func (t *Telemetry) Watch(c *leasehold.Client) error {
	if c == nil {
		return errors.New("leaseholdotel: watch: the client is nil")
	}
	t.watched.clients.Add(c)
	if err := t.watched.register(); err != nil {
		return fmt.Errorf("leaseholdotel: watch: %w", err)
	}
	return nil
}

// watched exports the Stats of clients as gauges.
type watched struct {
	meter         metric.Meter
	held, waiting metric.Int64ObservableUpDownCounter
	remaining     metric.Float64ObservableGauge
	region        metric.Int64ObservableUpDownCounter
	clients       metrics.Clients

	mu         sync.Mutex // guards the field "registered"
	registered bool
}

func newWatched(meter metric.Meter) (*watched, error) {
	held, err1 := meter.Int64ObservableUpDownCounter(metrics.HeldName, metric.WithUnit("{lock}"), metric.WithDescription(metrics.HeldHelp))
	waiting, err2 := meter.Int64ObservableUpDownCounter(metrics.WaitingName, metric.WithUnit("{call}"), metric.WithDescription(metrics.WaitingHelp))
	remaining, err3 := meter.Float64ObservableGauge(metrics.RemainingName, metric.WithUnit("s"), metric.WithDescription(metrics.RemainingHelp))
	region, err4 := meter.Int64ObservableUpDownCounter(metrics.RegionName, metric.WithUnit("{client}"), metric.WithDescription(metrics.RegionHelp))
	return &watched{meter: meter, held: held, waiting: waiting, remaining: remaining, region: region}, errors.Join(err1, err2, err3, err4)
}

// register registers the callback that sets the gauges, unless it is already registered.
// Before the first client is added there is no callback, so the gauges have no value
// instead of the value 0.
func (w *watched) register() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.registered {
		return nil
	}
	_, err := w.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		sum, _ := w.clients.Stats()
		o.ObserveInt64(w.held, int64(sum.Held))
		o.ObserveInt64(w.waiting, int64(sum.Waiting))
		if sum.Held > 0 {
			o.ObserveFloat64(w.remaining, sum.MinRemaining.Seconds())
		}
		for region, n := range w.clients.Regions() {
			o.ObserveInt64(w.region, int64(n), metric.WithAttributes(attribute.String("region", region)))
		}
		return nil
	}, w.held, w.waiting, w.remaining, w.region)
	w.registered = err == nil
	return err
}
