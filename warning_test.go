package leasehold_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAnExpiryWarningIsGivenOnceEachTimeTrustRunsShort(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		var warned atomic.Int64
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal(),
			leasehold.WithExpiryWarning(5*time.Second, func(*leasehold.Lock) { warned.Add(1) }))
		for want := range int64(3) {
			if got := warned.Load(); got != want {
				t.Errorf("warned %d times, want %d", got, want)
			}
			lab.Elapse(15 * time.Second)
			if err := lock.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.Release(lock)
	})
}

func TestAnExpiryWarningComesBeforeTheLossAndAfterALossNobodyLookedAt(t *testing.T) { // dynamolock: silent if it wakes after the expiry
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.Config(), k.Edit)
		var warned []time.Time
		began := time.Now()
		warning := leasehold.WithExpiryWarning(5*time.Second, func(*leasehold.Lock) { warned = append(warned, time.Now()) })
		lock := w.Acquire(c, "job", warning)
		lab.Elapse(time.Minute)
		if len(warned) != 0 {
			t.Fatalf("warned without need after %v", warned[0].Sub(began))
		}
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
		k.Boot.Store(int64(time.Hour)) // past the warning and the lease at once
		lab.Elapse(10 * time.Second)
		if len(warned) != 1 {
			t.Errorf("after a pause warned %d times", len(warned))
		}
		_ = paused.Release(t.Context())
	})
}

func TestAnExpiryWarningComesAtOnceWhenAShorterLeaseFallsShort(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		var warned int
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour), leasehold.WithExpiryWarning(time.Minute, func(*leasehold.Lock) { warned++ }))
		if err := lock.Renew(t.Context(), leasehold.WithLease(30*time.Second)); err != nil {
			t.Fatal(err)
		}
		lab.Elapse(time.Second)
		if warned != 1 {
			t.Errorf("warned %d times", warned)
		}
		_ = lock.Release(t.Context())
	})
}
