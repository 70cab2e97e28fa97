package hold_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestARenewalUnderASharedLeaseHasNoLeaseOfItsOwn(t *testing.T) {
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

func TestWhatAClientWithASharedLeaseResumedHasALeaseOfItsOwn(t *testing.T) {
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
		if left := time.Until(lock.TrustedUntil()); left != 36*time.Second { // less a tenth
			t.Errorf("trusted for %v", left)
		}
		lab.Elapse(time.Minute)
		_ = c.Close(t.Context())
	})
}
