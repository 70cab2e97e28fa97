package semaphore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/semaphore"
)

func TestDoHoldsAPermitWhileItsFunctionRuns(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		s, err := semaphore.New(c, "gpu", 1)
		if err != nil {
			t.Fatal(err)
		}
		failed := errors.New("no paper")
		err = s.Do(t.Context(), func(ctx context.Context, permit *leasehold.Lock) error {
			err := s.Do(t.Context(), func(context.Context, *leasehold.Lock) error {
				t.Error("called without a permit")
				return nil
			}, leasehold.NoWait())
			if !errors.Is(err, leasehold.ErrNotRun) || !errors.Is(err, leasehold.ErrHeld) || permit.Err() != nil || ctx.Err() != nil {
				t.Errorf("a second permit of one: %v, the first: %v", err, permit.Err())
			}
			return failed
		})
		if !errors.Is(err, failed) || errors.Is(err, leasehold.ErrNotRun) {
			t.Errorf("error %v", err)
		}
		if holders, err := s.Holders(t.Context()); len(holders) > 0 || err != nil {
			t.Errorf("afterwards held by %v, %v", holders, err)
		}
		if err := s.Do(t.Context(), nil); !errors.Is(err, leasehold.ErrNotRun) {
			t.Errorf("without a function: %v", err)
		}
	})
}
