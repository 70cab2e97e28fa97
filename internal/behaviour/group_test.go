package behaviour_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestGroupListsEachKeyOnceInGivenOrder(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		g := w.AcquireAll(c, leasehold.Keys("b", "a", "b", "c", "a"))
		var got []string
		for _, l := range g.Locks() {
			got = append(got, l.Key().Partition)
			if item := w.Item(l.Key().Partition); l.Token() == 0 || l.Record().Grant != lab.Text(item, "grantId") {
				t.Errorf("%v: the lock has the record %+v, and the table has %v", l.Key(), l.Record(), item)
			}
		}
		lab.Want(t, "locks", got, []string{"b", "a", "c"})
		w.Release(g)
	})
}

func TestGroupContextIsCancelledWhenAnyLockIsLost(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		type value struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), value{}, "kept"))
		g := lab.Must(c.AcquireAll(ctx, leasehold.Keys("a", "b")))(t)
		cancel()
		lab.WantErr(t, "group after the end of AcquireAll's context", g.Err(), nil)
		lab.Want(t, "value", g.Context().Value(value{}), "kept")
		bound, stop := g.Bind(t.Context())
		defer stop()
		derived, cancel := context.WithCancel(g.Context())
		defer cancel()
		w.Delete("b") // without its record, lock b is lost
		_ = g.Locks()[1].Renew(t.Context())
		<-derived.Done()
		for name, err := range map[string]error{"Err": g.Err(), "Context": context.Cause(g.Context()), "Bind": context.Cause(bound), "derived": context.Cause(derived)} {
			if lost := as[*leasehold.LostError](err); lost == nil || lost.Key.Partition != "b" || lost.Reason != leasehold.LostBroken {
				t.Errorf("%s: %v", name, err)
			}
		}
		lab.WantErr(t, "the other lock", g.Locks()[0].Err(), nil)
		lab.WantErr(t, "release", g.Release(t.Context()), leasehold.ErrLost)
		wantFree(w, leasehold.Keys("a", "b"))
	})
}

func TestGroupDoReturnsErrLostIfAnyLockIsLost(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		keys := leasehold.Keys("a", "b")
		g := w.AcquireAll(c, keys)
		err := g.Do(t.Context(), func(ctx context.Context, _ *leasehold.Group) error { return errors.Join(ctx.Err(), errFailed) })
		if !errors.Is(err, errFailed) || errors.Is(err, leasehold.ErrLost) {
			t.Errorf("error %v", err)
		}
		lab.WantErr(t, "after Do", g.Err(), leasehold.ErrReleased)
		g = w.AcquireAll(c, keys)
		err = g.Do(t.Context(), func(ctx context.Context, g *leasehold.Group) error {
			w.Delete("a")
			_ = g.Locks()[0].Renew(t.Context())
			<-ctx.Done()
			return nil
		})
		lab.WantErr(t, "Do during which a lock is lost", err, leasehold.ErrLost)
		wantFree(w, keys)
	})
}

func TestCloseWaitsForFunctionRunningInGroupDo(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		done := begin(func() error {
			return g.Do(t.Context(), func(ctx context.Context, _ *leasehold.Group) error {
				<-ctx.Done()
				lab.Elapse(time.Second)
				lab.Want(t, "held while the function runs", w.HeldAmong(leasehold.Keys("a", "b")), []string{"a", "b"})
				return context.Cause(ctx)
			})
		})
		synctest.Wait()
		closes(w, c)
		lab.WantErr(t, "Do", <-done, leasehold.ErrClosed)
	})
}

func TestGroupReleasesOtherLocksIfOneIsLostOrReleasedBeforeWork(t *testing.T) {
	type row struct {
		end  func(w *lab.World, lock *leasehold.Lock)
		want error
	}
	lab.Each(t, map[string]row{
		"lost": {func(w *lab.World, lock *leasehold.Lock) {
			w.Delete("b")
			_ = lock.Renew(w.T.Context())
		}, leasehold.ErrLost},
		"released": {func(w *lab.World, lock *leasehold.Lock) { w.Release(lock) }, leasehold.ErrReleased},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire := w.Client(lab.Config())
		keys := leasehold.Keys("a", "b", "c")
		g := w.AcquireAll(c, keys)
		tc.end(w, g.Locks()[1])
		wire.Sent()
		err := g.Do(t.Context(), func(context.Context, *leasehold.Group) error { t.Error("the function ran"); return nil })
		lab.WantErr(t, "Do", err, leasehold.ErrNotRun)
		lab.WantErr(t, "Do", err, tc.want)
		lab.Want(t, "requests", lab.Ops(wire.Sent()), []string{"UpdateItem", "UpdateItem"})
		wantFree(w, keys)
	})
}

func TestCloseReturnsSoonIfGroupDidNotStartItsWork(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		outer := w.Acquire(c, "a")
		g := lab.Must(c.AcquireAll(outer.Context(), leasehold.Keys("a", "b"), leasehold.Reentrant()))(t)
		w.Delete("b")
		_ = g.Locks()[1].Renew(t.Context())
		lab.WantErr(t, "do", g.Do(t.Context(), func(context.Context, *leasehold.Group) error { t.Error("the function ran"); return nil }), leasehold.ErrNotRun)
		// Close waits only for functions that Do runs. Here Do has run no function, so Close must
		// not wait, although the outer lock is still held.
		lab.WantErr(t, "Close", c.Close(w.Within(10*time.Second)), nil)
	})
}

func TestErrLostIsReturnedIfReleaseAfterWorkDetectsLoss(t *testing.T) {
	lab.Each(t, map[string]func(context.Context, *leasehold.Group, func()) error{
		"Lock.Do": func(ctx context.Context, g *leasehold.Group, steal func()) error {
			return g.Locks()[0].Do(ctx, func(context.Context, *leasehold.Lock) error { steal(); return nil })
		},
		"Group.Do": func(ctx context.Context, g *leasehold.Group, steal func()) error {
			return g.Do(ctx, func(context.Context, *leasehold.Group) error { steal(); return nil })
		},
	}, func(t *testing.T, w *lab.World, do func(context.Context, *leasehold.Group, func()) error) {
		c, _ := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		err := do(t.Context(), g, func() { w.Steal("a") })
		if lost := as[*leasehold.LostError](err); lost == nil || lost.Key.Partition != "a" {
			t.Error(err)
		}
		w.Release(g.Locks()[1])
	})
}
