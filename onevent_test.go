package leasehold_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestALockCanBeUsedWhereItsOwnEventIsTold(t *testing.T) {
	refuse := func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
		if c.renews() {
			return refusal(500, "InternalServerError"), nil
		}
		return next()
	}
	for _, kind := range []leasehold.EventKind{leasehold.EventRenewed, leasehold.EventRenewError, leasehold.EventCommitted} {
		for name, use := range map[string]func(context.Context, *leasehold.Lock) error{
			"Release": func(ctx context.Context, l *leasehold.Lock) error { return l.Release(ctx) },
			"Commit":  func(ctx context.Context, l *leasehold.Lock) error { return l.Commit(ctx, writes(note("a", "1"))) },
		} {
			t.Run(string(kind)+", "+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					var held atomic.Pointer[leasehold.Lock]
					var told atomic.Bool
					used := make(chan error, 1)
					cfg := config()
					cfg.OnEvent = func(ctx context.Context, e leasehold.Event) {
						if lock := held.Load(); e.Kind == kind && lock != nil && !told.Swap(true) {
							used <- use(ctx, lock)
						}
					}
					c, wire := w.work().client(cfg)
					lock := w.acquire(c, "job")
					held.Store(lock)
					switch kind {
					case leasehold.EventRenewError:
						wire.setFault(refuse)
					case leasehold.EventCommitted:
						go func() { _ = lock.Commit(t.Context(), nil) }()
					}
					select {
					case err := <-used:
						if err != nil {
							t.Error(err)
						}
					case <-time.After(12 * time.Second): // of 18 that it is trusted
						t.Error("it waits for the event that it was called from")
					}
					wire.setFault(nil)
					elapse(time.Minute)
					_ = lock.Release(t.Context())
				})
			})
		}
	}
}
