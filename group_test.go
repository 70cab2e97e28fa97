package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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

func TestALocksGroupIsInOrderOfFirstMentionAndDuplicatesCountOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
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
	})
}

func TestAGroupsContextEndsWithTheFirstOfItsLocks(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
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
		w.delete("b") // broken
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
		if held := w.held(leasehold.Keys("a", "b")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
	})
}

func TestDoReleasesEveryLockAndReportsALostOne(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		keys := leasehold.Keys("a", "b")
		failed := errors.New("failed")
		g := w.acquireAll(c, keys)
		if err := g.Do(t.Context(), func(ctx context.Context, _ *leasehold.Group) error { return errors.Join(ctx.Err(), failed) }); !errors.Is(err, failed) || errors.Is(err, leasehold.ErrLost) {
			t.Errorf("error %v", err)
		}
		if !errors.Is(g.Err(), leasehold.ErrReleased) {
			t.Errorf("after Do: %v", g.Err())
		}
		g = w.acquireAll(c, keys)
		err := g.Do(t.Context(), func(ctx context.Context, g *leasehold.Group) error {
			w.delete("a")
			_ = g.Locks()[0].Renew(t.Context())
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("with a lock lost on the way: %v", err)
		}
		g = w.acquireAll(c, keys)
		w.release(g.Locks()[1])
		err = g.Do(t.Context(), func(context.Context, *leasehold.Group) error { t.Error("run"); return nil })
		if !errors.Is(err, leasehold.ErrNotRun) {
			t.Errorf("with a lock released before: %v", err)
		}
		if held := w.held(keys); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
	})
}

func TestCloseWaitsForAGroupsFunction(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		g := w.acquireAll(c, leasehold.Keys("a", "b"))
		running, done := make(chan struct{}), make(chan error)
		go func() {
			done <- g.Do(t.Context(), func(ctx context.Context, _ *leasehold.Group) error {
				close(running)
				<-ctx.Done()
				elapse(time.Second)
				if held := w.held(leasehold.Keys("a", "b")); len(held) != 2 {
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

func TestAReleaseThatIsRefusedTogetherIsDoneOneByOne(t *testing.T) {
	for name, fault := range map[string]func(context.Context, call, func() (*http.Response, error)) (*http.Response, error){
		"not allowed": func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
			return refusal(400, "AccessDeniedException"), nil
		},
		"in conflict": func(_ context.Context, c call, _ func() (*http.Response, error)) (*http.Response, error) {
			return conflict(c), nil
		},
		"never answered": func(ctx context.Context, _ call, _ func() (*http.Response, error)) (*http.Response, error) {
			return hang(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.client(config())
				g := w.acquireAll(c, leasehold.Keys("a", "b", "c"))
				wire.sent()
				wire.setFault(once(call.releases, fault))
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if n := len(wire.sent()); n != 4 {
					t.Errorf("%d requests", n)
				}
				if err := g.Release(t.Context()); err != nil {
					t.Errorf("again: %v", err)
				}
				if n := len(wire.sent()); n != 0 {
					t.Errorf("again: %d requests", n)
				}
			})
		})
	}
}

func TestTrustInAllEndsBeforeTheirReleaseIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		g := w.acquireAll(c, leasehold.Keys("a", "b"))
		wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			for _, l := range g.Locks() {
				if c.releases() && l.Err() == nil {
					t.Errorf("%v is trusted while it is released", l.Key())
				}
			}
			return next()
		})
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAReleaseJoinsTheErrorsOfItsLocks(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		g := w.acquireAll(c, leasehold.Keys("a", "b", "c"))
		w.delete("b")
		err := g.Release(t.Context())
		var lost *leasehold.LostError
		if !errors.As(err, &lost) || lost.Key.Partition != "b" {
			t.Errorf("error %v", err)
		}
		if held := w.held(leasehold.Keys("a", "c")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
	})
}

func TestAGuardPerLockStandsWhileItsGrantDoes(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		g := w.acquireAll(c, leasehold.Keys("a", "b"))
		check := func() error {
			_, err := w.db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: g.Guards()})
			return err
		}
		elapse(12 * time.Second) // renewed
		if err := check(); err != nil {
			t.Error(err)
		}
		w.release(g.Locks()[1])
		if err := check(); err == nil {
			t.Error("the guard of a released lock stands")
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestKeysReleasedUnseenMayBeAnothersByNow(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, wire := w.client(config())
		b, _ := w.client(config())
		g := w.acquireAll(a, leasehold.Keys("a", "b"))
		var others *leasehold.Group
		wire.setFault(once(call.releases, func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			_, _ = next()
			others = w.acquireAll(b, leasehold.Keys("a", "b"))
			return nil, errReset
		}))
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := others.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAKeyThatCouldNotBeReleasedTogetherIsHandedOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		g := w.acquireAll(c, leasehold.Keys("a", "b"))
		next := make(chan *leasehold.Lock, 1)
		go func() { next <- w.acquire(c, "a") }()
		elapse(0)
		wire.sent()
		wire.setFault(once(call.releases, func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
			return refusal(400, "AccessDeniedException"), nil
		}))
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
		heir := <-next
		sent := wire.sent()
		if len(sent) != 3 || !slices.ContainsFunc(sent, call.handsOver) {
			t.Errorf("sent %v", ops(sent))
		}
		w.release(heir)
	})
}

func TestDoOfAGroupReleasesTheOthersOfALockThatHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		keys := leasehold.Keys("a", "b", "c")
		g := w.acquireAll(c, keys)
		w.delete("b")
		_ = g.Locks()[1].Renew(t.Context())
		wire.sent()
		err := g.Do(t.Context(), func(context.Context, *leasehold.Group) error { t.Error("run"); return nil })
		if !errors.Is(err, leasehold.ErrNotRun) || !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("error %v", err)
		}
		if sent := ops(wire.sent()); !slices.Equal(sent, []string{"TransactWriteItems"}) {
			t.Errorf("sent %v", sent)
		}
		if held := w.held(keys); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
		if err := c.Close(t.Context()); err != nil { // waits for functions in Do
			t.Error(err)
		}
	})
}
