package leasehold_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestALockCanBeUsedWhereItsOwnEventIsTold(t *testing.T) {
	refuse := func(r *lab.Request) (*http.Response, error) {
		if r.Renews() {
			return lab.Refusal(500, "InternalServerError"), nil
		}
		return r.Send()
	}
	for _, kind := range []leasehold.EventKind{leasehold.EventRenewed, leasehold.EventRenewError, leasehold.EventCommitted} {
		for name, use := range map[string]func(context.Context, *leasehold.Lock) error{
			"Release": func(ctx context.Context, l *leasehold.Lock) error { return l.Release(ctx) },
			"Commit": func(ctx context.Context, l *leasehold.Lock) error {
				return l.Commit(ctx, lab.Writes(lab.Note("a", "1")))
			},
		} {
			t.Run(string(kind)+", "+name, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					var held atomic.Pointer[leasehold.Lock]
					var told atomic.Bool
					used := make(chan error, 1)
					cfg := lab.Config()
					cfg.OnEvent = func(ctx context.Context, e leasehold.Event) {
						if lock := held.Load(); e.Kind == kind && lock != nil && !told.Swap(true) {
							used <- use(ctx, lock)
						}
					}
					c, wire := w.Work().Client(cfg)
					lock := w.Acquire(c, "job")
					held.Store(lock)
					switch kind {
					case leasehold.EventRenewError:
						wire.SetFault(refuse)
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
					wire.SetFault(nil)
					lab.Elapse(time.Minute)
					_ = lock.Release(t.Context())
				})
			})
		}
	}
}
