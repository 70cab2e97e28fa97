package behaviour_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAcquireAllAndReleaseCostOneWritePerKeyEach(t *testing.T) {
	for _, n := range []int{1, 2, 3, 100} {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, wire := w.Client(lab.Config())
			for round := range 2 { // in the first round the records are new; in the second they are the records that the release kept
				g := w.AcquireAll(c, append(lab.ManyKeys(n), lab.ManyKeys(1)...)) // one key is named twice
				if err := g.Err(); err != nil {
					t.Error(err)
				}
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if got, want := lab.Ops(wire.Sent()), slices.Repeat([]string{"UpdateItem"}, 2*n); !slices.Equal(got, want) {
					t.Errorf("%d keys, round %d: requests %v, want %v", n, round, got, want)
				}
				if held := w.HeldAmong(lab.ManyKeys(n)); len(held) > 0 {
					t.Errorf("released, and still held: %v", held)
				}
			}
		})
	}
}

func TestAcquireAllAcquiresMoreThanHundredKeysInOrder(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		keys := lab.ManyKeys(103)
		g := w.AcquireAll(c, keys)
		if n := len(wire.Sent()); n != 103 {
			t.Errorf("%d requests", n)
		}
		if held := w.HeldAmong(keys); len(held) != 103 {
			t.Errorf("%d are held", len(held))
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if held := w.HeldAmong(keys); len(held) > 0 {
			t.Errorf("released, and still held: %v", held)
		}
		if n := len(wire.Sent()); n != 103 {
			t.Errorf("released by %d requests", n)
		}
	})
}

func TestInvalidKeyListIsRejectedBeforeAnyRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		for name, keys := range map[string][]leasehold.Key{
			"none": nil, "an empty one": leasehold.Keys("a", ""), "a sort key in a table without": {{Partition: "a", Sort: "b"}},
		} {
			if _, err := c.AcquireAll(t.Context(), keys); err == nil {
				t.Errorf("AcquireAll of %s: no error", name)
			}
			if _, err := c.AcquireAny(t.Context(), keys); err == nil {
				t.Errorf("AcquireAny of %s: no error", name)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.AcquireAll(ctx, leasehold.Keys("a", "b")); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended ctx: %v", err)
		}
		if _, err := c.AcquireAny(ctx, leasehold.Keys("a", "b")); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended ctx: %v", err)
		}
		if n := len(wire.Sent()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestAcquireAllSucceedsSoonAfterLastRelease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		other := w.Acquire(a, "c")
		granted := make(chan *leasehold.Group)
		go func() { granted <- w.AcquireAll(b, leasehold.Keys("a", "b", "c")) }()
		lab.Elapse(5 * time.Second)
		if held := w.HeldAmong(leasehold.Keys("a", "b")); len(held) != 2 {
			t.Errorf("holds %v while it waits for c", held)
		}
		w.Release(other)
		began := time.Now()
		g := <-granted
		if took := time.Since(began); took > time.Second {
			t.Errorf("granted %v after the release", took)
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAcquireAllNoWaitNamesFirstHeldKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		held := w.AcquireAll(a, leasehold.Keys("b", "c"))
		_, err := b.AcquireAll(t.Context(), leasehold.Keys("d", "c", "b", "a"), leasehold.NoWait())
		var is *leasehold.HeldError
		if !errors.As(err, &is) || is.Key.Partition != "b" || is.Holder.Grant != held.Locks()[0].Record().Grant {
			t.Errorf("error %v", err)
		}
		if n := len(wire.Sent()); n > 4 { // up to four requests: grants of a and b, one read of the other keys, and a release of a
			t.Errorf("%d requests", n)
		}
		if held := w.HeldAmong(leasehold.Keys("a", "d")); len(held) > 0 || len(b.Held()) > 0 {
			t.Errorf("left held: %v, %v", held, b.Held())
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestDeadHoldersKeysAreTakenOverTogether(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		dead := w.AcquireAll(a, leasehold.Keys("a", "b", "c"))
		wire.SetFault(lab.Cut)
		b, _ := w.Client(lab.Config())
		began := time.Now()
		g := w.AcquireAll(b, leasehold.Keys("c", "a", "d"))
		if took := time.Since(began); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("granted after %v, a lease is 20s", took)
		}
		for i, l := range g.Locks() {
			if _, took := l.TookOver(); took != (i < 2) {
				t.Errorf("%v: taken over: %v", l.Key(), took)
			}
		}
		if dead.Err() == nil {
			t.Error("the dead holder believes")
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		_ = dead.Release(t.Context())
	})
}

func TestAcquireAllRenewsKeysUntilLastIsAcquired(t *testing.T) {
	for name, opts := range map[string][]leasehold.AcquireOption{"renewed": nil, "by hand": {leasehold.WithoutRenewal()}} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, _ := w.Client(lab.Config())
				b, wire := w.Client(lab.Config())
				other := w.Acquire(a, "b")
				granted := make(chan *leasehold.Group)
				go func() { granted <- w.AcquireAll(b, leasehold.Keys("c", "b", "a"), opts...) }()
				lab.Elapse(time.Minute)
				if held := w.HeldAmong(leasehold.Keys("a", "c")); !slices.Equal(held, []string{"a"}) {
					t.Errorf("held while b is awaited: %v", held)
				}
				token := w.Item("a")["fencingToken"]
				w.Release(other)
				g := <-granted
				if err := g.Err(); err != nil {
					t.Error(err)
				}
				if got := w.Item("a")["fencingToken"]; !reflect.DeepEqual(got, token) {
					t.Errorf("a was lost on the way: token %v, then %v", token, got)
				}
				wire.Sent()
				lab.Elapse(10 * time.Second)
				if n := len(wire.Sent()); (n == 0) != (opts != nil) {
					t.Errorf("%d requests in the background", n)
				}
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestCancelledAcquireAllLeavesNoKeyHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		other := w.Acquire(a, "c")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := b.AcquireAll(ctx, leasehold.Keys("a", "b", "c", "d"))
		var is *leasehold.HeldError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &is) || is.Key.Partition != "c" {
			t.Errorf("error %v", err)
		}
		if held := w.HeldAmong(leasehold.Keys("a", "b", "d")); len(held) > 0 || len(b.Held()) > 0 {
			t.Errorf("left held: %v, %v", held, b.Held())
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		w.Release(other)
	})
}

func TestAcquireOutOfKeyOrderReturnsDeadlockError(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("b", "d"))
		ctx := g.Context()
		wire.Sent()
		for name, err := range map[string]error{
			"a key it has":       lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("b", "e"))),
			"a key below":        lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("c", "e"))),
			"one key below":      lab.ErrorOf(c.Acquire(ctx, "a")),
			"any of what it has": lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("b", "d"))),
			"below, and shared":  lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("b", "c"), leasehold.Reentrant())),
		} {
			if !errors.Is(err, leasehold.ErrDeadlock) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(wire.Sent()); n != 0 {
			t.Errorf("%d requests", n)
		}
		above, err := c.AcquireAll(ctx, leasehold.Keys("b", "e", "d"), leasehold.Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		if above.Locks()[0].Token() != g.Locks()[0].Token() {
			t.Error("the grant is not shared")
		}
		if err := above.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if held := w.HeldAmong(leasehold.Keys("b", "d", "e")); !slices.Equal(held, []string{"b", "d"}) {
			t.Errorf("held after the inner release: %v", held)
		}
		below, err := c.TryAcquire(ctx, "a") // TryAcquire does not wait, so it may acquire a key out of order
		if err != nil {
			t.Fatal(err)
		}
		w.Release(below)
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestKeyOrderIsNotRestrictedByReleasedGroup(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("b", "d"))
		inner, err := c.Acquire(g.Context(), "e")
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		below, err := c.Acquire(inner.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		w.Release(below)
		w.Release(inner)
	})
}

func TestAcquireAllHoldsNoKeyAfterReentrantGrantEnds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		outer := w.Acquire(c, "a")
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			res, err := r.Send()
			w.Release(outer)
			return res, err
		}))
		// ctx carries the lock outer, but does not end when that lock ends.
		ctx := context.WithoutCancel(outer.Context())
		if _, err := c.AcquireAll(ctx, leasehold.Keys("a", "b"), leasehold.Reentrant()); !errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("error %v", err)
		}
		if held := w.HeldAmong(leasehold.Keys("a", "b")); len(held) > 0 || len(c.Held()) > 0 {
			t.Errorf("left held: %v, %v", held, c.Held())
		}
	})
}

func TestAcquireAllAppliesOptionsToEveryKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		keys := leasehold.Keys("a", "b")
		if _, err := c.AcquireAll(t.Context(), keys, leasehold.IfExists()); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("IfExists: %v", err)
		}
		g := w.AcquireAll(c, keys, leasehold.WithData([]byte("x")), leasehold.WithLease(10*time.Second),
			leasehold.WithAttributes(map[string]types.AttributeValue{"old": lab.Str("1")}))
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		g = w.AcquireAll(c, keys, leasehold.IfExists(), leasehold.WithAttributes(map[string]types.AttributeValue{"old": nil}), leasehold.DeleteOnRelease(true))
		for _, l := range g.Locks() {
			if string(l.Record().Data) != "x" || len(l.Record().Attributes) > 0 {
				t.Errorf("%v: data %q, attributes %v", l.Key(), l.Record().Data, l.Record().Attributes)
			}
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if w.Item("a") != nil || w.Item("b") != nil {
			t.Error("the records are still there")
		}
	})
}
