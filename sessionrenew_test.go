package leasehold_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestARenewalUnderASharedLeaseHasNoLeaseOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(sharedConfig())
		lock := w.acquire(c, "job")
		wire.sent()
		err := lock.Renew(t.Context(), leasehold.WithData([]byte("x")), leasehold.WithLease(2*time.Second))
		var unsupported *leasehold.UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.Feature != "WithLease together with SharedLease" {
			t.Errorf("renew: %v", err)
		}
		if sent := wire.sent(); len(sent) != 0 {
			t.Errorf("%d requests for a lease that cannot be had", len(sent))
		}
		if ms := textOf(w.item("job"), "leaseDuration"); ms != "3600000" {
			t.Errorf("a lease of %s ms in the record", ms)
		}
		if err := lock.Renew(t.Context(), leasehold.WithData([]byte("y"))); err != nil {
			t.Errorf("renewed without a lease: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestWhatAClientWithASharedLeaseResumedHasALeaseOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		first, _ := w.client(config())
		g, err := w.acquire(first, "job").Detach()
		if err != nil {
			t.Fatal(err)
		}
		c, wire := w.client(sharedConfig())
		lock, err := c.Resume(t.Context(), g, leasehold.WithLease(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Renew(t.Context(), leasehold.WithLease(40*time.Second)); err != nil {
			t.Fatal(err)
		}
		wire.setFault(cut)
		if left := time.Until(lock.TrustedUntil()); left != 36*time.Second { // less a tenth
			t.Errorf("trusted for %v", left)
		}
		elapse(time.Minute)
		_ = c.Close(t.Context())
	})
}
