package rwlock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestDoHoldsTheLockWhileItsFunctionRuns(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		failed := errors.New("no paper")
		err := a.l.DoWrite(t.Context(), func(ctx context.Context, lock *leasehold.Lock) error {
			for what, do := range map[string]func(context.Context, func(context.Context, *leasehold.Lock) error, ...leasehold.AcquireOption) error{
				"read": b.l.DoRead, "write": b.l.DoWrite,
			} {
				called := false
				err := do(t.Context(), func(context.Context, *leasehold.Lock) error { called = true; return nil }, leasehold.NoWait())
				if called || !errors.Is(err, leasehold.ErrNotRun) || !errors.Is(err, leasehold.ErrHeld) {
					t.Errorf("%s beside a writer: called %t, %v", what, called, err)
				}
			}
			if err := lock.Err(); err != nil || ctx.Err() != nil {
				t.Errorf("while it runs: %v", err)
			}
			return failed
		})
		if !errors.Is(err, failed) || errors.Is(err, leasehold.ErrNotRun) {
			t.Errorf("error %v", err)
		}
		err = a.l.DoRead(t.Context(), func(context.Context, *leasehold.Lock) error {
			return b.l.DoRead(t.Context(), func(context.Context, *leasehold.Lock) error { return nil }, leasehold.NoWait())
		})
		if err != nil {
			t.Errorf("two readers: %v", err)
		}
		if err := a.l.DoWrite(t.Context(), func(context.Context, *leasehold.Lock) error { return nil }, leasehold.NoWait()); err != nil {
			t.Errorf("after them: %v", err)
		}
		if err := a.l.DoRead(t.Context(), nil); !errors.Is(err, leasehold.ErrNotRun) || err.Error() != "leasehold: do set in table locks: the function is nil" {
			t.Errorf("without a function: %v", err)
		}
	})
}
