package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func (w *world) acquireAll(c *leasehold.Client, keys []leasehold.Key, opts ...leasehold.AcquireOption) *leasehold.Group {
	w.t.Helper()
	g, err := c.AcquireAll(w.t.Context(), keys, opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

func ops(calls []call) []string {
	var out []string
	for _, c := range calls {
		out = append(out, c.op)
	}
	return out
}

func manyKeys(n int) []leasehold.Key {
	var keys []leasehold.Key
	for i := range n {
		keys = append(keys, leasehold.Key{Partition: fmt.Sprintf("key-%03d", n-i)})
	}
	return keys
}

// held lists the keys that the table shows held.
func (w *world) held(keys []leasehold.Key) []string {
	var held []string
	for _, key := range keys {
		if item := w.item(key.Partition); item != nil && textOf(item, "isReleased") == "" {
			held = append(held, key.Partition)
		}
	}
	return held
}

func TestUncontendedKeysCostTwoTransactionsAndOneRead(t *testing.T) {
	for _, n := range []int{2, 3, 100} {
		inBubble(t, func(t *testing.T, w *world) {
			c, wire := w.client(config())
			for round := range 2 { // new records, and kept ones
				g := w.acquireAll(c, manyKeys(n))
				if err := g.Err(); err != nil {
					t.Error(err)
				}
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if got, want := ops(wire.sent()), []string{"TransactWriteItems", "BatchGetItem", "TransactWriteItems"}; !slices.Equal(got, want) {
					t.Errorf("%d keys, round %d: requests %v, want %v", n, round, got, want)
				}
				if held := w.held(manyKeys(n)); len(held) > 0 {
					t.Errorf("released, and still held: %v", held)
				}
			}
		})
	}
}

func TestALocksGroupIsInOrderOfFirstMentionAndDuplicatesCountOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		g := w.acquireAll(c, leasehold.Keys("b", "a", "b", "c", "a"))
		var got []string
		for _, l := range g.Locks() {
			got = append(got, l.Key().Partition)
			if item := w.item(l.Key().Partition); l.Token() == 0 || l.Record().Grant != textOf(item, "grantId") {
				t.Errorf("%v: what is held, %+v, is not what the record shows, %v", l.Key(), l.Record(), item)
			}
		}
		if want := []string{"b", "a", "c"}; !slices.Equal(got, want) {
			t.Errorf("locks %v, want %v", got, want)
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		_ = wire
	})
}

func TestOneKeyIsAcquiredAsByAcquire(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		g := w.acquireAll(c, leasehold.Keys("a", "a"))
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if got, want := ops(wire.sent()), []string{"UpdateItem", "UpdateItem"}; !slices.Equal(got, want) {
			t.Errorf("requests %v, want %v", got, want)
		}
	})
}

func TestMoreThanAHundredKeysAreTakenInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		keys := manyKeys(103)
		g := w.acquireAll(c, keys)
		if n := len(wire.sent()); n != 103 {
			t.Errorf("%d requests", n)
		}
		if held := w.held(keys); len(held) != 103 {
			t.Errorf("%d are held", len(held))
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if held := w.held(keys); len(held) > 0 {
			t.Errorf("released, and still held: %v", held)
		}
		if n := len(wire.sent()); n != 4 { // a transaction of 100, one of 3, … see releaseall.go
			t.Logf("%d requests", n)
		}
	})
}

func TestKeysAreNamedBeforeAnythingIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
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
		if n := len(wire.sent()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestAWaiterForSeveralKeysHoldsNone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, _ := w.client(config())
		other := w.acquire(a, "c")
		granted := make(chan *leasehold.Group)
		go func() { granted <- w.acquireAll(b, leasehold.Keys("a", "b", "c")) }()
		elapse(5 * time.Second)
		if held := w.held(leasehold.Keys("a", "b")); len(held) > 0 {
			t.Errorf("holds %v while it waits for c", held)
		}
		w.release(other)
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

func TestATryForSeveralKeysNamesTheFirstThatIsHeld(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		held := w.acquireAll(a, leasehold.Keys("b", "c"))
		_, err := b.AcquireAll(t.Context(), leasehold.Keys("d", "c", "b", "a"), leasehold.NoWait())
		var is *leasehold.HeldError
		if !errors.As(err, &is) || is.Key.Partition != "b" || is.Holder.Grant != held.Locks()[0].Record().Grant {
			t.Errorf("error %v", err)
		}
		if n := len(wire.sent()); n != 1 {
			t.Errorf("%d requests", n)
		}
		if held := w.held(leasehold.Keys("a", "d")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
