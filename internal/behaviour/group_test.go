package behaviour_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestGroupListsEachKeyOnceInGivenOrder(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("b", "a", "b", "c", "a"))
		var got []string
		for _, l := range g.Locks() {
			got = append(got, l.Key().Partition)
			if item := w.Item(l.Key().Partition); l.Token() == 0 || l.Record().Grant != lab.Text(item, "grantId") {
				t.Errorf("%v: what is held, %+v, is not what the record shows, %v", l.Key(), l.Record(), item)
			}
		}
		if want := []string{"b", "a", "c"}; !slices.Equal(got, want) {
			t.Errorf("locks %v, want %v", got, want)
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestGroupContextEndsWhenFirstLockEnds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		type value struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), value{}, "kept"))
		g, err := c.AcquireAll(ctx, leasehold.Keys("a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if g.Err() != nil || g.Context().Value(value{}) != "kept" {
			t.Errorf("after the end of AcquireAll's context: %v", g.Err())
		}
		bound, stop := g.Bind(t.Context())
		defer stop()
		derived, cancel := context.WithCancel(g.Context())
		defer cancel()
		w.Delete("b") // deleting the record breaks the grant of b
		_ = g.Locks()[1].Renew(t.Context())
		<-derived.Done()
		for name, err := range map[string]error{"Err": g.Err(), "Context": context.Cause(g.Context()), "Bind": context.Cause(bound), "derived": context.Cause(derived)} {
			var lost *leasehold.LostError
			if !errors.As(err, &lost) || lost.Key.Partition != "b" || lost.Reason != leasehold.LostBroken {
				t.Errorf("%s: %v", name, err)
			}
		}
		if g.Locks()[0].Err() != nil {
			t.Error("the other lock has ended too")
		}
		if err := g.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release: %v", err)
		}
		if held := w.HeldAmong(leasehold.Keys("a", "b")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
	})
}

func TestGroupDoReleasesAllLocksAndReportsLoss(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		keys := leasehold.Keys("a", "b")
		failed := errors.New("failed")
		g := w.AcquireAll(c, keys)
		if err := g.Do(t.Context(), func(ctx context.Context, _ *leasehold.Group) error { return errors.Join(ctx.Err(), failed) }); !errors.Is(err, failed) || errors.Is(err, leasehold.ErrLost) {
			t.Errorf("error %v", err)
		}
		if !errors.Is(g.Err(), leasehold.ErrReleased) {
			t.Errorf("after Do: %v", g.Err())
		}
		g = w.AcquireAll(c, keys)
		err := g.Do(t.Context(), func(ctx context.Context, g *leasehold.Group) error {
			w.Delete("a")
			_ = g.Locks()[0].Renew(t.Context())
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("with a lock lost on the way: %v", err)
		}
		g = w.AcquireAll(c, keys)
		w.Release(g.Locks()[1])
		err = g.Do(t.Context(), func(context.Context, *leasehold.Group) error { t.Error("run"); return nil })
		if !errors.Is(err, leasehold.ErrNotRun) {
			t.Errorf("with a lock released before: %v", err)
		}
		if held := w.HeldAmong(keys); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
	})
}

func TestCloseWaitsForFunctionOfGroup(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		running, done := make(chan struct{}), make(chan error)
		go func() {
			done <- g.Do(t.Context(), func(ctx context.Context, _ *leasehold.Group) error {
				close(running)
				<-ctx.Done()
				lab.Elapse(time.Second)
				if held := w.HeldAmong(leasehold.Keys("a", "b")); len(held) != 2 {
					t.Errorf("while the function runs, held are %v", held)
				}
				return context.Cause(ctx)
			})
		}()
		<-running
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("error %v", err)
		}
	})
}

func TestGroupDoReleasesRemainingLocksIfOneHasEnded(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		keys := leasehold.Keys("a", "b", "c")
		g := w.AcquireAll(c, keys)
		w.Delete("b")
		_ = g.Locks()[1].Renew(t.Context())
		wire.Sent()
		err := g.Do(t.Context(), func(context.Context, *leasehold.Group) error { t.Error("run"); return nil })
		if !errors.Is(err, leasehold.ErrNotRun) || !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("error %v", err)
		}
		if sent := lab.Ops(wire.Sent()); !slices.Equal(sent, []string{"UpdateItem", "UpdateItem"}) {
			t.Errorf("sent %v", sent)
		}
		if held := w.HeldAmong(keys); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
	})
}

func TestCloseDoesNotWaitIfGroupFunctionNeverRan(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		outer := w.Acquire(c, "a")
		g, err := c.AcquireAll(outer.Context(), leasehold.Keys("a", "b"), leasehold.Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		w.Delete("b")
		_ = g.Locks()[1].Renew(t.Context())
		if err := g.Do(t.Context(), func(context.Context, *leasehold.Group) error { t.Error("run"); return nil }); !errors.Is(err, leasehold.ErrNotRun) {
			t.Errorf("error %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil { // the outer lock is still held, but no function works under it
			t.Error(err)
		}
	})
}

func TestDoReturnsLossFoundByRelease(t *testing.T) {
	for _, keys := range [][]leasehold.Key{leasehold.Keys("a"), leasehold.Keys("a", "b")} {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, _ := w.Client(lab.Config())
			g := w.AcquireAll(c, keys)
			steal := func() error { w.Steal("a"); return nil }
			do := func() error {
				return g.Do(t.Context(), func(context.Context, *leasehold.Group) error { return steal() })
			}
			if len(keys) == 1 {
				do = func() error {
					return g.Locks()[0].Do(t.Context(), func(context.Context, *leasehold.Lock) error { return steal() })
				}
			}
			var lost *leasehold.LostError
			if err := do(); !errors.As(err, &lost) || lost.Key.Partition != "a" {
				t.Errorf("%d locks: %v", len(keys), err)
			}
		})
	}
}
