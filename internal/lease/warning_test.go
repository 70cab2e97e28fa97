package lease

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWarningIsGivenOnceEachTimeTrustRunsLow(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		given := make(chan time.Duration, 10)
		w.lease.Warn(&Warning{Left: 5 * time.Second, Call: func() { given <- w.lease.Remaining() }})
		elapse(15 * time.Second)
		if len(given) != 1 || <-given != 5*time.Second {
			t.Fatal("not given, or at another time")
		}
		wantErr(t, "renew", w.renew(Changes{}), nil)
		elapse(15 * time.Second)
		want(t, "warnings after a renewal", len(given), 1)
	})
}

func TestWarningIsGivenAtOnceIfTooLittleTrustIsLeft(t *testing.T) {
	for name, shorten := range map[string]func(w *world) error{
		"a shorter lease": func(w *world) error { return w.renew(Changes{Lease: 10 * time.Second}) },
		"the lease is lost": func(w *world) error {
			w.overwrite("another's")
			_ = w.renew(Changes{})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, manual, func(t *testing.T, w *world) {
				var given atomic.Int32
				w.lease.Warn(&Warning{Left: 10 * time.Second, Call: func() { given.Add(1) }})
				wantErr(t, "shorten", shorten(w), nil)
				synctest.Wait()
				want(t, "warnings", given.Load(), 1)
			})
		})
	}
}

func TestExpiryWarningIsNotGivenForReleasedLease(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		w.lease.Warn(&Warning{Left: 5 * time.Second, Call: func() { t.Error("given") }})
		w.end()
		time.Sleep(time.Minute)
	})
}

func TestCancelledWarningIsNotGiven(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		warning := &Warning{Left: 5 * time.Second, Call: func() { t.Error("given") }}
		w.lease.Warn(warning)
		warning.Cancel()
		elapse(time.Minute)
		w.lostBy(t, Expired)
	})
}

func TestWarningOfChildLeaseIsGivenWhenTrustInParentRunsLow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent := newWorld(manual)
		defer parent.end()
		child := newWorld(func(c *Leases, terms *Terms) { manual(c, terms); terms.Parent = parent.lease })
		defer child.end()
		var given atomic.Int32
		child.lease.Warn(&Warning{Left: 5 * time.Second, Call: func() { given.Add(1) }})
		time.Sleep(10 * time.Second)
		wantErr(t, "renew", parent.renew(Changes{}), nil)
		child.lease.Rearm()
		elapse(12 * time.Second)
		want(t, "warnings after the parent's renewal", given.Load(), 0)
		elapse(time.Second)
		want(t, "warnings", given.Load(), 1)
	})
}
