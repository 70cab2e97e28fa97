package attempts_test

import (
	"errors"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestHolderIsReadSeparatelyIfEngineOmitsOldItem(t *testing.T) { // old local engines return no item with a failed condition; errors of other tools, such as Terraform's, then show an empty holder
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		wire.SetFault(lab.ShowNothing)
		lock := w.Acquire(a, "job", leasehold.WithoutRenewal())
		var held *leasehold.HeldError
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.As(err, &held) || held.Holder.Token != lock.Token() {
			t.Errorf("held: %v", err)
		}
		if sent := wire.Sent(); len(sent) != 2 || sent[1].Op != "GetItem" {
			t.Errorf("sent %v", sent)
		}
		w.Release(lock)

		lost := w.Acquire(b, "job", leasehold.WithoutRenewal())
		w.Delete("job")
		next := w.Acquire(a, "job")
		var gone *leasehold.LostError
		if err := lost.Renew(t.Context()); !errors.As(err, &gone) || gone.Reason != leasehold.LostReplaced || gone.By.Token != next.Token() {
			t.Errorf("lost: %v", err)
		}
		_ = lost.Release(t.Context())
		w.Release(next)

		if _, err := b.Acquire(t.Context(), "none", leasehold.IfExists()); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("none: %v", err)
		}
	})
}
