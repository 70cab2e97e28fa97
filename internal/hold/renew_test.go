package hold_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestRenewUnderSharedLeaseRejectsWithLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		lock := w.Acquire(c, "job")
		wire.Sent()
		err := lock.Renew(t.Context(), leasehold.WithData([]byte("x")), leasehold.WithLease(2*time.Second))
		var unsupported *leasehold.UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.Feature != "WithLease together with SharedLease" {
			t.Errorf("renew: %v", err)
		}
		if sent := wire.Sent(); len(sent) != 0 {
			t.Errorf("%d requests for a lease that cannot be had", len(sent))
		}
		if ms := lab.Text(w.Item("job"), "leaseDuration"); ms != "3600000" {
			t.Errorf("a lease of %s ms in the record", ms)
		}
		if err := lock.Renew(t.Context(), leasehold.WithData([]byte("y"))); err != nil {
			t.Errorf("renewed without a lease: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestResumedLockHasSeparateLeaseDespiteSharedLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		first, _ := w.Client(lab.Config())
		g := w.Detach(w.Acquire(first, "job"))
		c, wire := w.Client(lab.SharedConfig())
		lock, err := c.Resume(t.Context(), g, leasehold.WithLease(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Renew(t.Context(), leasehold.WithLease(40*time.Second)); err != nil {
			t.Fatal(err)
		}
		wire.SetFault(lab.Cut)
		if left := time.Until(lock.TrustedUntil()); left != 36*time.Second { // the lease of 40 s minus the margin, a tenth of the lease
			t.Errorf("trusted for %v", left)
		}
		lab.Elapse(time.Minute)
		_ = c.Close(t.Context())
	})
}

func TestOnEventMayCommitRenewOrReleaseLock(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, l *leasehold.Lock) error{
		"commit":  func(ctx context.Context, l *leasehold.Lock) error { return l.Commit(ctx, nil) },
		"renew":   func(ctx context.Context, l *leasehold.Lock) error { return l.Renew(ctx) },
		"release": func(ctx context.Context, l *leasehold.Lock) error { return l.Release(ctx) },
	} {
		for kind, happens := range map[leasehold.EventKind]func(w *lab.World, wire *lab.Wire){
			leasehold.EventRenewed:    func(*lab.World, *lab.Wire) {},
			leasehold.EventRenewError: func(_ *lab.World, wire *lab.Wire) { wire.SetFault(lab.Once(lab.Call.Renews, lab.Out)) },
			leasehold.EventThrottled:  func(_ *lab.World, wire *lab.Wire) { wire.SetFault(lab.Once(lab.Call.Renews, lab.Throttled)) },
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
