package hold_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestRenewRejectsNewLeaseDurationForLockUnderSharedLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.SharedConfig())
		wire.Sent()
		err := lock.Renew(t.Context(), leasehold.WithData([]byte("x")), leasehold.WithLease(2*time.Second))
		var unsupported *leasehold.UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.Feature != "WithLease together with SharedLease" {
			t.Errorf("renew: %v", err)
		}
		lab.Want(t, "requests for an invalid lease", len(wire.Sent()), 0)
		lab.Want(t, "leaseDuration in ms", lab.Text(w.Item("job"), "leaseDuration"), "3600000")
		lab.WantErr(t, "renew without WithLease", lock.Renew(t.Context(), leasehold.WithData([]byte("y"))), nil)
		_ = c.Close(t.Context())
	})
}

func TestResumedLockDoesNotUseSharedLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		first, _ := w.Client(lab.Config())
		g := w.Detach(w.Acquire(first, "job"))
		c, wire := w.Client(lab.SharedConfig())
		lock := w.Resume(c, g, leasehold.WithLease(10*time.Second))
		lab.OK(t, lock.Renew(t.Context(), leasehold.WithLease(40*time.Second)))
		wire.SetFault(lab.Cut)
		// The trust is the lease of 40 s minus a margin of a tenth of the lease.
		lab.Want(t, "trust", time.Until(lock.TrustedUntil()), 36*time.Second)
		lab.Elapse(time.Minute)
		_ = c.Close(t.Context())
	})
}

func TestOnEventCallbackMayCommitRenewOrReleaseLock(t *testing.T) {
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
							t.Errorf("error %v", err)
						}
						lab.Want(t, "returned after", time.Since(began), 0)
					}
					c, wire := w.Work().Client(cfg)
					held.Store(w.Acquire(c, "job"))
					happens(w, wire)
					lab.Elapse(6 * time.Second)
					lab.Want(t, "OnEvent was called", told.Load(), true)
					_ = c.Close(t.Context())
				})
			})
		}
	}
}

// logged returns a configuration with a logger. It also returns a function that counts the
// logged lines with a given message.
func logged() (leasehold.Config, func(message string) int) {
	var log bytes.Buffer
	cfg := lab.Config()
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) // concurrent calls are safe, because the handler locks a mutex for each line
	return cfg, func(message string) int { return strings.Count(log.String(), message) }
}

func TestFailingRenewalsAreLoggedEveryTenSeconds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg, said := logged()
		c, wire := w.Client(cfg)
		locks := w.AcquireMany(c, "job", 200)
		lab.Elapse(10 * time.Second)
		wire.SetFault(lab.Out)
		lab.Elapse(12 * time.Second)
		// The first warning is about the first failure, and the second one comes after ten seconds.
		lab.Want(t, "warnings in 12 s", said("level=WARN"), 2)
		if said("locks=1 attempts=1 ") != 1 || said("locks=200 attempts=") != 1 || said("remaining=") != 2 {
			t.Error("the log has no summaries with the least remaining trust")
		}
		wire.SetFault(nil)
		lab.Elapse(5 * time.Second)
		lab.Want(t, "lines about successful renewals", said("renewals succeed again"), 1)
		lab.Want(t, "lost locks", lab.Lost(locks), 0)
		wire.SetFault(lab.Cut)
		lab.Elapse(20 * time.Second)
		lab.Want(t, "lines for lost locks", said("lock lost"), len(locks))
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestRecoveryOfRenewalsIsLoggedEvenIfOneLockIsReleased(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg, said := logged()
		c, wire := w.Client(cfg)
		released, stays := w.Acquire(c, "released"), w.Acquire(c, "stays")
		wire.SetFault(lab.Out)
		lab.Elapse(12 * time.Second)
		wire.SetFault(nil)
		w.Release(released)
		lab.Elapse(5 * time.Second)
		if said("renewals fail") == 0 || said("renewals succeed again") != 1 {
			t.Error("the log does not say that renewals succeed again")
		}
		w.Release(stays)
	})
}

func TestRecoveryOfRenewalsIsLoggedAfterLossOfEarlierSession(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg, said := logged()
		cfg.SharedLease = true
		c, wire := w.Client(cfg)
		lost := w.Acquire(c, "lost")
		wire.SetFault(lab.Out)
		<-lost.Context().Done()
		lab.Elapse(time.Minute)
		wire.SetFault(nil)
		stays := w.Acquire(c, "stays")
		wire.SetFault(lab.Out)
		lab.Elapse(5 * time.Second)
		wire.SetFault(nil)
		lab.Elapse(5 * time.Second)
		lab.Want(t, "lines about successful renewals", said("renewals succeed again"), 1)
		w.Release(stays)
	})
}

func TestRecoveryOfRenewalsIsLoggedOnlyAfterAllLocksAreRenewed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg, said := logged()
		c, wire := w.Client(cfg)
		a, b := w.Acquire(c, "a"), w.Acquire(c, "b")
		wire.SetFault(lab.On(lab.Call.Renews, lab.Out))
		lab.Elapse(8 * time.Second)
		wire.SetFault(lab.On(func(c lab.Call) bool { return slices.Contains(c.Keys(), "b") }, lab.Out))
		lab.Elapse(5 * time.Second)
		if said("renewals fail") == 0 || said("renewals succeed again") != 0 {
			t.Error("the log says that renewals succeed again, although renewals of b fail")
		}
		wire.SetFault(nil)
		lab.Elapse(2 * time.Second)
		lab.Want(t, "lines about successful renewals", said("renewals succeed again"), 1)
		w.Release(a)
		w.Release(b)
	})
}

func TestLossOfLockIsNotLoggedAsRecoveryOfRenewals(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg, said := logged()
		c, wire := w.Client(cfg)
		a, b := w.Acquire(c, "a"), w.Acquire(c, "b")
		wire.SetFault(lab.On(func(c lab.Call) bool { return slices.Contains(c.Keys(), "b") }, lab.Out))
		lab.Elapse(time.Minute)
		if said("renewals fail") == 0 || b.Err() == nil || said("renewals succeed again") != 0 {
			t.Errorf("%d lines say that renewals succeed again; Err of b: %v", said("renewals succeed again"), b.Err())
		}
		wire.SetFault(nil)
		w.Release(a)
		_ = c.Close(t.Context())
	})
}
