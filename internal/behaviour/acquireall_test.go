package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAcquireAllSendsOneWritePerKey(t *testing.T) {
	for _, n := range []int{1, 2, 3, 103} { // 103 keys do not fit into one transaction: DynamoDB allows 100 writes
		oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
			// In the first round the locks have no records yet. In the second round they
			// have the records that the release kept.
			for round := range 2 {
				g := w.AcquireAll(c, append(lab.ManyKeys(n), lab.ManyKeys(1)...)) // key-001 is given twice
				lab.Want(t, "held", len(w.HeldAmong(lab.ManyKeys(n))), n)
				lab.WantErr(t, "group", g.Err(), nil)
				w.Release(g)
				lab.Want(t, fmt.Sprintf("requests for %d keys, round %d", n, round), lab.Ops(wire.Sent()), slices.Repeat([]string{"UpdateItem"}, 2*n))
				lab.Want(t, "held after the release", w.HeldAmong(lab.ManyKeys(n)), nil)
			}
		})
	}
}

func TestAcquireAllSendsNothingForInvalidArguments(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		ended := w.Ended()
		for name, tc := range map[string]struct {
			ctx  context.Context
			keys []leasehold.Key
		}{
			"no keys": {t.Context(), nil}, "an empty key": {t.Context(), leasehold.Keys("a", "")},
			"a sort key in a table without one": {t.Context(), []leasehold.Key{{Partition: "a", Sort: "b"}}},
			"two keys and an ended context":     {ended, leasehold.Keys("a", "b")},
		} {
			for call, err := range map[string]error{
				"AcquireAll": lab.ErrorOf(c.AcquireAll(tc.ctx, tc.keys)), "AcquireAny": lab.ErrorOf(c.AcquireAny(tc.ctx, tc.keys)),
			} {
				if err == nil || errors.Is(err, context.Canceled) != (tc.ctx == ended) {
					t.Errorf("%s with %s: %v", call, name, err)
				}
			}
		}
		wantSent(t, wire, 0)
	})
}

func TestErrorOfAcquireAllContainsAlphabeticallyFirstHeldKey(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		b, wire := w.Client(lab.Config())
		held := w.AcquireAll(a, leasehold.Keys("b", "c"))
		_, err := b.AcquireAll(t.Context(), leasehold.Keys("d", "c", "b", "a"), leasehold.NoWait())
		if is := as[*leasehold.HeldError](err); is == nil || is.Key.Partition != "b" || is.Holder.Grant != held.Locks()[0].Record().Grant {
			t.Errorf("error %v", err)
		}
		// The requests are grants of keys a and b, one read of keys c and d, and a release of key a.
		lab.WantRange(t, "requests", len(wire.Sent()), 0, 4)
		lab.Want(t, "keys left held", w.HeldAmong(leasehold.Keys("a", "d")), nil)
		lab.Want(t, "locks held", len(b.Held()), 0)
		w.Release(held)
	})
}

func TestAcquireAllTakesOverKeysOfDeadHoldersAfterOneLease(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		var dead []*leasehold.Lock
		for _, key := range []string{"a", "b", "c"} {
			dead = append(dead, w.LeavesHeld(cfg, 0, key)...) // each holder is a client of its own
		}
		b, _ := w.Client(lab.Config())
		began := time.Now()
		g := w.AcquireAll(b, leasehold.Keys("c", "a", "d"))
		lab.WantTook(t, "granted after", began, 20*time.Second, 21*time.Second)
		for i, l := range g.Locks() {
			if _, took := l.TookOver(); took != (i < 2) {
				t.Errorf("%v: taken over: %v", l.Key(), took)
			}
		}
		lab.Want(t, "locks that their dead holders have lost", lab.Lost(dead), 3)
		w.Release(g)
	})
}

func TestAcquireAllRenewsAcquiredKeysWhileWaiting(t *testing.T) {
	type options = []leasehold.AcquireOption
	lab.Each(t, map[string]options{"with renewal": nil, "without renewal": {leasehold.WithoutRenewal()}}, func(t *testing.T, w *lab.World, opts options) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		other := w.Acquire(a, "b")
		granted := begin(func() *leasehold.Group { return w.AcquireAll(b, leasehold.Keys("c", "b", "a"), opts...) })
		lab.Elapse(time.Minute)
		lab.Want(t, "held while the caller waits for b", w.HeldAmong(leasehold.Keys("a", "c")), []string{"a"})
		token := w.Item("a")["fencingToken"]
		w.Release(other)
		began := time.Now()
		g := <-granted
		lab.WantTook(t, "granted after the release", began, 0, time.Second)
		lab.WantErr(t, "group", g.Err(), nil)
		lab.Want(t, "token of the grant of a", w.Item("a")["fencingToken"], token)
		wire.Sent()
		lab.Elapse(10 * time.Second)
		lab.Want(t, "requests are sent in the background", len(wire.Sent()) > 0, opts == nil)
		w.Release(g)
	})
}

func TestCancelledAcquireAllLeavesNoKeyHeld(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		b, _ := w.Client(lab.Config())
		other := w.Acquire(a, "c")
		_, err := b.AcquireAll(w.Within(5*time.Second), leasehold.Keys("a", "b", "c", "d"))
		var is *leasehold.HeldError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &is) || is.Key.Partition != "c" {
			t.Errorf("error %v", err)
		}
		lab.Want(t, "keys left held", w.HeldAmong(leasehold.Keys("a", "b", "d")), nil)
		lab.Want(t, "locks held", len(b.Held()), 0)
		closes(w, b)
		w.Release(other)
	})
}

func TestAcquireOutOfKeyOrderReturnsErrDeadlock(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		g := w.AcquireAll(c, leasehold.Keys("b", "d"))
		ctx := g.Context()
		wire.Sent()
		for name, err := range map[string]error{
			"a key of the group": lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("b", "e"))),
			"a key before d":     lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("c", "e"))),
			"one key before b":   lab.ErrorOf(c.Acquire(ctx, "a")),
			"any of its keys":    lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("b", "d"))),
			"c, with Reentrant":  lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("b", "c"), leasehold.Reentrant())),
		} {
			lab.WantErr(t, name, err, leasehold.ErrDeadlock)
		}
		wantSent(t, wire, 0)
		above := lab.Must(c.AcquireAll(ctx, leasehold.Keys("b", "e", "d"), leasehold.Reentrant()))(t)
		lab.Want(t, "token of the shared grant", above.Locks()[0].Token(), g.Locks()[0].Token())
		w.Release(above)
		lab.Want(t, "held after the inner release", w.HeldAmong(leasehold.Keys("b", "d", "e")), []string{"b", "d"})
		below, err := c.TryAcquire(ctx, "a") // TryAcquire does not wait, so keys need not be acquired in order
		lab.OK(t, err)
		w.Release(below)
		w.Release(g)
	})
}

func TestReleasedGroupDoesNotRestrictOrderOfLaterAcquires(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		g := w.AcquireAll(c, leasehold.Keys("b", "d"))
		inner := lab.Must(c.Acquire(g.Context(), "e"))(t)
		w.Release(g)
		below := lab.Must(c.Acquire(inner.Context(), "a"))(t)
		w.Release(below)
		w.Release(inner)
	})
}

func TestReentrantAcquireAllFailsIfOuterLockIsReleased(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		outer := w.Acquire(c, "a")
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			res, err := r.Send()
			w.Release(outer)
			return res, err
		}))
		// ctx carries the outer lock as a value, but is not cancelled when the outer lock is
		// released.
		ctx := context.WithoutCancel(outer.Context())
		lab.WantErr(t, "AcquireAll", lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("a", "b"), leasehold.Reentrant())), leasehold.ErrReleased)
		lab.Want(t, "keys left held", w.HeldAmong(leasehold.Keys("a", "b")), nil)
		lab.Want(t, "locks held", len(c.Held()), 0)
	})
}

func TestAcquireAllAppliesOptionsToEveryKey(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		keys := leasehold.Keys("a", "b")
		lab.WantErr(t, "IfExists", lab.ErrorOf(c.AcquireAll(t.Context(), keys, leasehold.IfExists())), leasehold.ErrNotFound)
		g := w.AcquireAll(c, keys, leasehold.WithData([]byte("x")), leasehold.WithLease(10*time.Second),
			leasehold.WithAttributes(map[string]types.AttributeValue{"old": lab.Str("1")}))
		w.Release(g)
		g = w.AcquireAll(c, keys, leasehold.IfExists(), leasehold.WithAttributes(map[string]types.AttributeValue{"old": nil}), leasehold.DeleteOnRelease(true))
		for _, l := range g.Locks() {
			lab.Want(t, "data", string(l.Record().Data), "x")
			lab.Want(t, "attributes", len(l.Record().Attributes), 0)
		}
		w.Release(g)
		lab.Want(t, "record of a", w.Item("a"), nil)
		lab.Want(t, "record of b", w.Item("b"), nil)
	})
}
