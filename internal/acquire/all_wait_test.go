package acquire_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAcquireAllAcquiresKeysOnlyInSortedOrder(t *testing.T) {
	cases := map[string]bool{"held by another goroutine": false, "held by another process": true}
	lab.Each(t, cases, func(t *testing.T, w *lab.World, elsewhere bool) {
		c, _ := w.Client(lab.Config())
		holder := c
		if elsewhere {
			holder, _ = w.Client(lab.Config())
		}
		b := w.Acquire(holder, "b")
		granted := make(chan *leasehold.Group)
		go func() { granted <- w.AcquireAll(c, leasehold.Keys("a", "b", "c")) }()
		for range 5 {
			lab.Elapse(time.Minute)
			ctx := w.Within(time.Second)
			for _, opts := range [][]leasehold.AcquireOption{nil, {leasehold.NoWait()}} {
				if lock, err := c.Acquire(ctx, "c", opts...); err != nil {
					t.Errorf("c is free, but Acquire returned %v", err)
				} else {
					w.Release(lock)
				}
			}
		}
		// Another caller now acquires the key "c", which follows "b" in the sorted order. So
		// AcquireAll has to wait for "c" as well.
		higher := w.Acquire(c, "c")
		w.Release(b)
		lab.Elapse(time.Minute)
		began := time.Now()
		w.Release(higher)
		g := <-granted
		lab.WantTook(t, "time until the grant after all keys were free", began, 0, 2*time.Second)
		w.Release(g)
	})
}

func TestAcquireAllIsNotStarvedBySingleKeyWaiters(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		ctx, cancel := context.WithCancel(t.Context())
		// busy acquires and releases the key again and again. Several goroutines call busy for each
		// key. So the key is nearly always held, and most of these goroutines wait in the local queue
		// of the key.
		busy := func(key string) {
			for ctx.Err() == nil {
				lock, err := c.Acquire(ctx, key)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				time.Sleep(300 * time.Millisecond)
				_ = lock.Release(t.Context())
			}
		}
		for _, key := range []string{"a", "a", "b", "b", "b", "c", "c"} {
			go busy(key)
		}
		lab.Elapse(time.Second)
		began := time.Now()
		g := w.AcquireAll(c, leasehold.Keys("a", "b", "c"))
		lab.WantTook(t, "granted after", began, 0, time.Minute)
		cancel()
		w.Release(g)
		lab.Elapse(time.Second)
		lab.Want(t, "locks held at the end", len(c.Held()), 0)
	})
}

func TestTryAcquireFailsFastIfAcquireAllWaitsForSameKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		other := w.Acquire(a, "b")
		ctx, cancel := context.WithCancel(t.Context())
		done := lab.Go(func() error { return lab.ErrorOf(b.AcquireAll(ctx, leasehold.Keys("a", "b"))) })
		lab.Elapse(time.Second)
		began := time.Now()
		if _, err := b.TryAcquire(t.Context(), "b"); !errors.Is(err, leasehold.ErrHeld) || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		cancel()
		<-done
		w.Release(other)
		w.Release(w.Acquire(b, "a", leasehold.NoWait()))
	})
}

func TestLeaseOfEachKeyInAcquireAllStartsWithGrantOfThatKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(2*time.Second)))
		began := time.Now()
		g := w.AcquireAll(c, leasehold.Keys("a", "b"), leasehold.WithoutRenewal())
		for i, least := range []time.Duration{17 * time.Second, 19 * time.Second} {
			trust := g.Locks()[i].TrustedUntil().Sub(began)
			lab.WantRange(t, "trust counted from the call", trust, least, least+time.Second)
		}
		w.Release(g)
	})
}

func TestAcquireAllHoldsNoKeyIfGrantTimesOut(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.On(grants("b"), lab.Cut))
		lab.WantErr(t, "AcquireAll", lab.ErrorOf(c.AcquireAll(w.Within(time.Second), leasehold.Keys("a", "b"))), context.DeadlineExceeded)
		lab.Want(t, "locks held", len(c.Held()), 0)
		lab.Want(t, "keys left held", w.HeldAmong(leasehold.Keys("a")), nil)
		wire.SetFault(nil)
		lab.OK(t, c.Close(t.Context()))
	})
}

func TestTimedOutAcquireAllReleasesGrantWhoseReplyWasLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			switch isB := slices.Contains(r.Keys(), "b"); {
			case isB && r.Grants():
				return lab.LoseReply(r)
			case isB && r.Releases():
				return lab.ArriveAfter(time.Second)(r)
			}
			return r.Send()
		})
		lab.WantErr(t, "AcquireAll", lab.ErrorOf(c.AcquireAll(w.Within(time.Second), leasehold.Keys("a", "b"))), context.DeadlineExceeded)
		lab.Want(t, "keys still held", w.HeldAmong(leasehold.Keys("a", "b")), nil)
		_ = c.Close(t.Context())
	})
}

func TestAcquireAllAndAcquireAnyUseSharedLeaseIfConfigured(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		g := w.AcquireAll(holder, leasehold.Keys("x", "y"))
		if one, err := holder.AcquireAny(t.Context(), leasehold.Keys("x", "z")); err != nil || one.Key().Partition != "z" {
			t.Fatalf("AcquireAny: %v, %v", one, err)
		}
		for _, key := range []string{"x", "y", "z"} {
			if lab.Text(w.Item(key), "session") == "" {
				t.Errorf("%s has no session", key)
			}
		}
		wire.SetFault(lab.Cut)
		began := time.Now()
		heir, _ := w.Client(lab.SharedConfig())
		all := w.AcquireAll(heir, leasehold.Keys("x", "y"))
		one := lab.Must(heir.AcquireAny(t.Context(), leasehold.Keys("z")))(t)
		if took := time.Since(began); took < 20*time.Second || took > 25*time.Second || g.Err() == nil {
			t.Errorf("taken over after %v; error of the dead holder: %v", took, g.Err())
		}
		w.Release(one)
		w.Release(all)
		_ = heir.Close(t.Context())
	})
}

func TestAcquireAllSendsOnlyOneBatchReadEvenIfTwoKeysAreHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		c, wire := w.Client(lab.Config())
		for i, key := range []string{"b", "c"} {
			lock := w.Acquire(other, key)
			time.AfterFunc(time.Duration(5+5*i)*time.Second, func() { _ = lock.Release(t.Context()) })
		}
		g := w.AcquireAll(c, leasehold.Keys("a", "b", "c"))
		lab.Want(t, "batch reads", lab.Count(wire.Sent(), func(c lab.Call) bool { return c.Op == "BatchGetItem" }), 1)
		w.Release(g)
	})
}

func TestAcquireAllReacquiresKeyLostDuringWait(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		b := w.Acquire(other, "b")
		c, _ := w.Client(lab.Config())
		granted := make(chan *leasehold.Group)
		go func() { granted <- w.AcquireAll(c, leasehold.Keys("a", "b")) }()
		lab.Elapse(time.Second)
		w.Steal("a") // the next renewal of a shows that the lock is lost, while the call waits for b
		lab.Elapse(10 * time.Second)
		w.Release(b)
		g := <-granted
		lab.WantErr(t, "group", g.Err(), nil)
		lab.Want(t, "owner of a", lab.Text(w.Item("a"), "ownerName"), g.Locks()[0].Record().Owner)
		w.Release(g)
	})
}

func TestAcquireAllSucceedsIfAccessIsDeniedBriefly(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		for key, held := range map[string]time.Duration{"a": time.Second, "b": 5 * time.Second} {
			lock := w.Acquire(other, key)
			time.AfterFunc(held, func() { _ = lock.Release(t.Context()) })
		}
		c, wire := w.Client(lab.Config())
		began := time.Now()
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if after := time.Since(began); after > 2*time.Second && after < 4*time.Second { // at this time the call holds a and waits for b
				return lab.Refused("AccessDeniedException")(r)
			}
			return r.Send()
		})
		w.Release(w.AcquireAll(c, leasehold.Keys("a", "b")))
	})
}

func TestAcquireAllSendsNothingWhileItLetsOtherProcessesGoFirst(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, a := oftenHandedOver(w)
		ended := lab.Go(func() error { return lab.ErrorOf(c.AcquireAll(w.Within(time.Second), leasehold.Keys("a", "b"))) })
		w.Release(a)
		w.WantSilence(wire, time.Minute)
		lab.WantErr(t, "AcquireAll", <-ended, context.DeadlineExceeded)
	})
}

// The client knows the record of "a" because it has just handed "a" over. So it waits for "a"
// without sending a grant first.
func TestAcquireAllObservesAllHoldersAfterHandOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.LeavesHeld(lab.Config(), 0, "b")
		c, _ := w.Client(lab.Config())
		a := w.Acquire(c, "a")
		waiter, wire := w.Client(lab.Config())
		gone := lab.Go(func() error { return lab.ErrorOf(waiter.Acquire(t.Context(), "a")) })
		lab.Elapse(time.Second)
		wire.SetFault(lab.Cut) // the waiter dies
		lab.OK(t, a.Renew(t.Context()))
		w.Release(a)
		began := time.Now()
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		lab.WantTook(t, "AcquireAll took", began, 20*time.Second, 22*time.Second)
		w.Release(g)
		wire.SetFault(nil)
		_ = waiter.Close(t.Context())
		<-gone
	})
}

// AcquireAll loses "a" while it waits for "c". So it gives "b" and "c" back, and waits for "a"
// again.
func TestGoroutineAcquiresKeyThatAcquireAllHasGivenBack(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		held := w.Acquire(other, "c")
		c, _ := w.Client(lab.Config())
		ctx, cancel := context.WithCancel(t.Context())
		ended := lab.Go(func() error { return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("a", "b", "c"))) })
		lab.Elapse(time.Second)
		lab.OK(t, other.Break(t.Context(), lab.Must(other.Get(t.Context(), "a"))(t), leasehold.BreakOptions{}))
		a := w.Acquire(other, "a")
		lab.Elapse(time.Minute)
		w.Release(held)
		lab.Elapse(time.Second)
		for _, key := range []string{"b", "c"} {
			lock, err := c.Acquire(w.Within(time.Minute), key)
			if err != nil {
				t.Error(err)
				continue
			}
			w.Release(lock)
		}
		w.Release(a)
		cancel()
		<-ended
	})
}

// AcquireAll has lost "a", so it gives "b" back. A grant that it sent for "b" earlier, and that had
// no answer, reaches DynamoDB only now.
func TestLateGrantDoesNotBlockKeyThatAcquireAllGaveBack(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		held := w.Acquire(other, "c")
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(grants("b"), lab.Delayed(10*time.Second)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := lab.Go(func() error { return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("a", "b", "c"))) })
		lab.Elapse(2 * time.Second)
		w.Steal("a")
		lab.Elapse(7 * time.Second)
		w.Release(held)
		lab.Elapse(2 * time.Second)
		lab.Want(t, "keys held after the late grant", w.HeldAmong(leasehold.Keys("b")), []string{"b"})
		b, err := c.TryAcquire(t.Context(), "b")
		lab.WantErr(t, "TryAcquire", err, nil)
		if err == nil {
			w.Release(b)
		}
		cancel()
		<-ended
	})
}

func TestAcquireAllReacquiresLostKeyEvenIfAccessIsDeniedBriefly(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		b := w.Acquire(other, "b")
		c, wire := w.Client(lab.Config())
		ctx, cancel := context.WithCancel(t.Context())
		ended := lab.Go(func() error { return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("a", "b"))) })
		lab.Elapse(time.Second)
		lab.OK(t, other.Break(t.Context(), lab.Must(other.Get(t.Context(), "a"))(t), leasehold.BreakOptions{}))
		lab.Elapse(time.Minute)
		wire.SetFault(lab.On(grants("a"), lab.Refused("AccessDeniedException")))
		w.Release(b)
		lab.Elapse(time.Second)
		wire.SetFault(nil)
		lab.OK(t, <-ended)
		cancel()
	})
}
