package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

// throttled refuses every request.
func throttled(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	return refusal(400, "ProvisionedThroughputExceededException"), nil
}

func TestWhoIsToldOfARenewalMayCommitOrRelease(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, l *leasehold.Lock) error{
		"commit":  func(ctx context.Context, l *leasehold.Lock) error { return l.Commit(ctx, nil) },
		"renew":   func(ctx context.Context, l *leasehold.Lock) error { return l.Renew(ctx) },
		"release": func(ctx context.Context, l *leasehold.Lock) error { return l.Release(ctx) },
	} {
		for kind, happens := range map[leasehold.EventKind]func(w *world, wire *wire){
			leasehold.EventRenewed:    func(*world, *wire) {},
			leasehold.EventRenewError: func(_ *world, wire *wire) { wire.setFault(once(call.renews, out)) },
			leasehold.EventThrottled:  func(_ *world, wire *wire) { wire.setFault(once(call.renews, throttled)) },
			leasehold.EventLost:       func(w *world, _ *wire) { w.delete("job") },
		} {
			t.Run(name+", "+string(kind), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					var held atomic.Pointer[leasehold.Lock]
					var told atomic.Bool
					cfg := config()
					cfg.OnEvent = func(ctx context.Context, e leasehold.Event) {
						if e.Kind != kind || told.Swap(true) {
							return
						}
						began := time.Now()
						if err := do(ctx, held.Load()); (err != nil) != (kind == leasehold.EventLost) || err != nil && !errors.Is(err, leasehold.ErrLost) {
							t.Errorf("%v", err)
						}
						if took := time.Since(began); took > 0 {
							t.Errorf("took %v", took)
						}
					}
					c, wire := w.work().client(cfg)
					held.Store(w.acquire(c, "job"))
					happens(w, wire)
					elapse(6 * time.Second)
					if !told.Load() {
						t.Error("not told")
					}
					_ = c.Close(t.Context())
				})
			})
		}
	}
}
