package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// throttled refuses every request.
func throttled(*lab.Request) (*http.Response, error) {
	return lab.Refusal(400, "ProvisionedThroughputExceededException"), nil
}

func TestWhoIsToldOfARenewalMayCommitOrRelease(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, l *leasehold.Lock) error{
		"commit":  func(ctx context.Context, l *leasehold.Lock) error { return l.Commit(ctx, nil) },
		"renew":   func(ctx context.Context, l *leasehold.Lock) error { return l.Renew(ctx) },
		"release": func(ctx context.Context, l *leasehold.Lock) error { return l.Release(ctx) },
	} {
		for kind, happens := range map[leasehold.EventKind]func(w *lab.World, wire *lab.Wire){
			leasehold.EventRenewed:    func(*lab.World, *lab.Wire) {},
			leasehold.EventRenewError: func(_ *lab.World, wire *lab.Wire) { wire.SetFault(lab.Once(lab.Call.Renews, out)) },
			leasehold.EventThrottled:  func(_ *lab.World, wire *lab.Wire) { wire.SetFault(lab.Once(lab.Call.Renews, throttled)) },
			leasehold.EventLost:       func(w *lab.World, _ *lab.Wire) { w.Delete("job") },
		} {
			t.Run(name+", "+string(kind), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					var held atomic.Pointer[leasehold.Lock]
					var told atomic.Bool
					cfg := lab.Config()
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
					c, wire := w.Work().Client(cfg)
					held.Store(w.Acquire(c, "job"))
					happens(w, wire)
					lab.Elapse(6 * time.Second)
					if !told.Load() {
						t.Error("not told")
					}
					_ = c.Close(t.Context())
				})
			})
		}
	}
}
