package lease_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestExpiryWarningIsGivenEvenIfPauseSkipsDueTime(t *testing.T) { // dynamolock gives no warning if its process wakes up after the expiry
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.Config(), k.Edit)
		var warned []time.Time
		warning := leasehold.WithExpiryWarning(5*time.Second, func(*leasehold.Lock) { warned = append(warned, time.Now()) })
		lock := w.Acquire(c, "job", warning)
		lab.Elapse(time.Minute)
		lab.Want(t, "warnings without need", len(warned), 0)
		wire.SetFault(lab.Cut)
		until := lock.TrustedUntil()
		lab.Elapse(time.Minute)
		if len(warned) != 1 || !warned[0].Equal(until.Add(-5*time.Second)) {
			t.Errorf("warned %d times, trust ended at %v", len(warned), until)
		}
		wire.SetFault(nil)
		_ = lock.Release(t.Context())

		warned = nil
		paused := w.Acquire(c, "other", warning)
		k.Boot.Store(int64(time.Hour)) // the clock jumps past the time of the warning and past the expiry
		lab.Elapse(10 * time.Second)
		lab.Want(t, "warnings after a pause", len(warned), 1)
		_ = paused.Release(t.Context())
	})
}

func TestCallbackOfImmediateWarningMayUseLock(t *testing.T) {
	slow := func(r *lab.Request) (*http.Response, error) {
		if r.Grants() || r.Renews() {
			return lab.Slow(2900 * time.Millisecond)(r)
		}
		return r.Send()
	}
	lab.Each(t, map[string]func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock){
		"more than the lease": func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock) {
			c, _ := w.Client(lab.Config())
			return c, w.Acquire(c, "job", opts...)
		},
		"a slow grant": func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock) {
			c, wire := w.Client(lab.Config())
			wire.SetFault(slow)
			return c, w.Acquire(c, "job", append(opts, leasehold.WithLease(4*time.Second))...)
		},
		"little left of a shared lease": func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock) {
			c, wire := w.Client(lab.SharedConfig())
			w.Acquire(c, "other")
			wire.SetFault(lab.On(lab.Call.RenewsSession, lab.Drop))
			lab.Elapse(17 * time.Second)
			return c, w.Acquire(c, "job", opts...)
		},
		"resumed": func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock) {
			c, wire := w.Client(lab.Config())
			g := w.Detach(w.Acquire(c, "job", leasehold.WithLease(4*time.Second)))
			wire.SetFault(slow)
			lock, err := c.Resume(w.T.Context(), g)
			if err != nil {
				w.T.Fatal(err)
			}
			again, err := c.Acquire(lock.Context(), "job", append(opts, leasehold.Reentrant())...)
			if err != nil {
				w.T.Fatal(err)
			}
			return c, again
		},
		"handed over": func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock) {
			c, wire, before := w.Holding(lab.Config())
			next := make(chan *leasehold.Lock, 1)
			go func() { next <- w.Acquire(c, "job", append(opts, leasehold.WithLease(4*time.Second))...) }()
			synctest.Wait()
			wire.SetFault(slow)
			w.Release(before)
			return c, <-next
		},
		"of several keys": func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock) {
			c, wire := w.Client(lab.Config())
			wire.SetFault(slow)
			g := w.AcquireAll(c, leasehold.Keys("job", "other"), append(opts, leasehold.WithLease(8*time.Second))...)
			return c, g.Locks()[0]
		},
	}, func(t *testing.T, w *lab.World, acquire func(w *lab.World, opts []leasehold.AcquireOption) (*leasehold.Client, *leasehold.Lock)) {
		// With so many warnings, some are given while others are still being set.
		const many = 100
		var given atomic.Int64
		var opts []leasehold.AcquireOption
		for range many {
			opts = append(opts, leasehold.WithExpiryWarning(time.Hour, func(l *leasehold.Lock) {
				given.Add(1)
				_, _, _ = l.Err(), l.Record(), l.TrustedUntil()
				_ = l.Context().Err()
			}))
		}
		c, lock := acquire(w, opts)
		synctest.Wait()
		if n := given.Load(); n < many || lock.Err() != nil {
			t.Errorf("%d of %d warnings were given: %v", n, many, lock.Err())
		}
		_ = c.Close(t.Context())
	})
}

func TestLockReleasedInWarningCallbackIsForgotten(t *testing.T) {
	lab.Each(t, map[string]leasehold.Config{
		"a lease each": lab.Config(), "a shared lease": lab.SharedConfig(),
	}, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _ := w.Client(cfg)
		for range 50 {
			lock := w.Acquire(c, "job", leasehold.WithExpiryWarning(time.Hour, func(l *leasehold.Lock) { _ = l.Release(context.Background()) }))
			<-lock.Context().Done()
			_ = lock.Release(t.Context())
		}
		lab.Want(t, "locks held", c.Stats().Held, 0)
		if cfg.SharedLease {
			lab.Want(t, "locks of the session", len(w.Session(c).(interface{ Locks() []*hold.Lock }).Locks()), 0)
		}
		_ = c.Close(t.Context())
	})
}
