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
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if len(given) != 1 || <-given != 5*time.Second {
			t.Fatal("not given, or at another time")
		}
		if err := w.renew(Changes{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if len(given) != 1 {
			t.Errorf("given %d times after a renewal", len(given))
		}
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
				if err := shorten(w); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if n := given.Load(); n != 1 {
					t.Errorf("given %d times", n)
				}
			})
		})
	}
}

func TestExpiryWarningIsNotGivenForAReleasedLease(t *testing.T) {
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
		time.Sleep(time.Minute)
		synctest.Wait()
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
		if err := parent.renew(Changes{}); err != nil {
			t.Fatal(err)
		}
		child.lease.Rearm()
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if n := given.Load(); n != 0 {
			t.Error("given although the parent was renewed")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := given.Load(); n != 1 {
			t.Errorf("given %d times", n)
		}
	})
}
