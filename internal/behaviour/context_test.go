package behaviour_test

import (
	"context"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestContextsOfReleasedLockEndWithErrReleased(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		lock := lab.Must(c.Acquire(ctx, "job"))(t)
		cancel()
		lab.WantErr(t, "lock after the end of Acquire's context", lock.Err(), nil)
		lab.Want(t, "value", lock.Context().Value(key{}), "value")
		if _, ok := lock.Context().Deadline(); ok {
			t.Error("a deadline")
		}
		derived, cancelDerived := context.WithCancel(lock.Context())
		defer cancelDerived()
		bound, cancelBound := lock.Bind(context.WithValue(t.Context(), key{}, "bound"))
		defer cancelBound()
		lab.Want(t, "value of the bound context", bound.Value(key{}), "bound")
		w.Release(lock)
		for name, ctx := range map[string]context.Context{"Context": lock.Context(), "derived": derived, "Bind": bound} {
			<-ctx.Done()
			lab.WantErr(t, name+": cause", context.Cause(ctx), leasehold.ErrReleased)
		}
	})
}

func TestAcquireUnderContextThatHoldsKeyReturnsDeadlockError(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		b, _ := w.Client(lab.Config())
		outer := w.Acquire(a, "outer")
		inner := lab.Must(a.Acquire(outer.Context(), "inner"))(t)
		underBoth, cancel := outer.Bind(t.Context())
		defer cancel()
		underBoth, cancel = inner.Bind(underBoth)
		defer cancel()
		for name, tc := range map[string]struct {
			c    *leasehold.Client
			ctx  context.Context
			want error
		}{
			"a lock within":     {a, inner.Context(), leasehold.ErrDeadlock},
			"bound to both":     {a, underBoth, leasehold.ErrDeadlock},
			"of none":           {a, t.Context(), leasehold.ErrHeld},
			"of another client": {b, inner.Context(), leasehold.ErrHeld},
		} {
			lab.WantErr(t, name, lab.ErrorOf(tc.c.TryAcquire(tc.ctx, "outer")), tc.want)
		}
		w.Release(outer)
		again := lab.Must(a.Acquire(inner.Context(), "outer"))(t)
		w.Release(again)
		w.Release(inner)
	})
}

func TestCancelOfBindEndsContextButNotLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		lock := holds(w, "job")
		bound, cancel := lock.Bind(t.Context())
		derived, cancelDerived := context.WithCancel(bound)
		defer cancelDerived()
		cancel()
		for name, ctx := range map[string]context.Context{"Bind": bound, "derived": derived} {
			select {
			case <-ctx.Done():
			default:
				t.Errorf("%s goes on", name)
			}
			lab.WantErr(t, name+": cause", context.Cause(ctx), context.Canceled)
		}
		lab.WantErr(t, "the lock", lock.Err(), nil)
		w.Release(lock)
	})
}
