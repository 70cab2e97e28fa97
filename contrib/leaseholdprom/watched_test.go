package leaseholdprom_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/leaseholdprom"
	"github.com/leasehold-go/leasehold/internal/eventtest"
)

func TestGaugesCoverAllWatchedClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		m := leaseholdprom.New(reg, nil)
		if _, ok := samples(t, reg)["leasehold_held"]; ok {
			t.Error("gauges of no client")
		}
		w := eventtest.New(t)
		a, wire := w.Client(m.OnEvent)
		b, _ := w.Client(m.OnEvent)
		idle, _ := w.Client(m.OnEvent)
		notWatched, _ := w.Client(m.OnEvent)
		for _, c := range []*leasehold.Client{a, b, idle, idle, a} {
			m.Watch(c)
		}
		want(t, samples(t, reg), map[string]sample{"leasehold_held": {}, "leasehold_waiting": {}})
		if s, ok := samples(t, reg)["leasehold_min_remaining_seconds"]; ok {
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
		want(t, samples(t, reg), map[string]sample{
			"leasehold_held":                  {value: 3},
			"leasehold_waiting":               {value: 1},
			"leasehold_min_remaining_seconds": {value: 150}, // the lease of 300 s, less the margin and the time elapsed
		})

		stop()
		<-waits
		wire.Mend()
		for _, c := range []*leasehold.Client{a, b, idle, notWatched} {
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		want(t, samples(t, reg), map[string]sample{"leasehold_held": {}, "leasehold_waiting": {}})
	})
}

func TestUnusedWatchedClientIsGarbageCollected(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(reg, nil)
	w := eventtest.New(t)
	var client weak.Pointer[leasehold.Client]
	func() {
		c, _ := w.Client(m.OnEvent)
		client = weak.Make(c)
		m.Watch(c)
	}()
	for range 10 { // repeated, as the stack frame of an interrupted goroutine may keep the client alive for a while
		runtime.GC()
	}
	if client.Value() != nil {
		t.Error("it is watched for ever")
	}
	want(t, samples(t, reg), map[string]sample{"leasehold_held": {}})
}
