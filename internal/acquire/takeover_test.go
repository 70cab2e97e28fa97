package acquire_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestTakeoverIsRejectedIfRenewalIsAppliedFirst(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wireA := w.Client(lab.Config())
		b, wireB := w.Client(lab.Config())
		w.Acquire(a, "job")
		began := time.Now()
		var renewal func() (*http.Response, error)
		wireA.SetFault(func(r *lab.Request) (*http.Response, error) {
			if renewal == nil {
				renewal = r.Send
			}
			return lab.Cut(r)
		})
		var landed time.Time
		wireB.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() && landed.IsZero() && time.Since(began) > 19*time.Second {
				_, _ = renewal()
				landed = time.Now()
			}
			return r.Send()
		})
		w.Acquire(b, "job")
		if waited := time.Since(landed); landed.IsZero() || waited < 20*time.Second || waited > 22*time.Second {
			t.Errorf("taken over %v after the renewal had landed, a lease is 20s", waited)
		}
		_ = a.Close(t.Context())
	})
}
