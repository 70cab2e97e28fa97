package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestTheFirstFreeKeyIsAcquiredInOneWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		lock, err := b.AcquireAny(t.Context(), leasehold.Keys("b", "a"))
		if err != nil || lock.Key().Partition != "b" {
			t.Fatalf("%v, error %v: keys are tried in the order given", lock, err)
		}
		w.release(lock)
		if got := ops(wire.sent()); !slices.Equal(got, []string{"UpdateItem", "UpdateItem"}) {
			t.Errorf("requests %v", got)
		}
		other := w.acquire(a, "b")
		lock, err = b.AcquireAny(t.Context(), leasehold.Keys("b", "a"))
		if err != nil || lock.Key().Partition != "a" {
			t.Fatalf("%v, error %v", lock, err)
		}
		w.release(lock)
		w.release(other)
	})
}

func TestAllOfTheKeysAreWatchedByOneRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		keys := leasehold.Keys("a", "b", "c")
		others := w.acquireAll(a, keys)
		granted := make(chan *leasehold.Lock)
		go func() {
			lock, err := b.AcquireAny(t.Context(), keys)
			if err != nil {
				t.Error(err)
			}
			granted <- lock
		}()
		elapse(30 * time.Second)
		reads := 0
		for i, c := range wire.sent() {
			if i >= 3 && c.op != "BatchGetItem" {
				t.Fatalf("request %d is %s", i, c.op)
			}
			reads++
		}
		if reads < 30 || reads > 300 {
			t.Errorf("%d reads in 30s: one in half a second, on average and on a long-held key, is wanted", reads)
		}
		began := time.Now()
		w.release(others.Locks()[1])
		lock := <-granted
		if took := time.Since(began); took > 1100*time.Millisecond || lock.Key().Partition != "b" {
			t.Errorf("%v granted after %v", lock.Key(), took)
		}
		w.release(lock)
		if err := others.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestADeadHoldersKeyIsTakenOverAmongSeveral(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, wire := w.client(config())
		alive, _ := w.client(config())
		dead, other := w.acquire(a, "b"), w.acquire(alive, "a")
		wire.setFault(cut)
		b, _ := w.client(config())
		began := time.Now()
		lock, err := b.AcquireAny(t.Context(), leasehold.Keys("a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 20*time.Second || took > 20*time.Second+100*time.Millisecond {
			t.Errorf("granted after %v, a lease is 20s", took)
		}
		if _, took := lock.TookOver(); !took || lock.Key().Partition != "b" {
			t.Errorf("%v, taken over: %v", lock.Key(), took)
		}
		w.release(lock)
		w.release(other)
		_ = dead.Release(t.Context())
	})
}

func TestOneKeyOfSeveralIsHadWhateverRepliesAreLost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		wire.setFault(once(call.grants, loseReply))
		lock, err := c.AcquireAny(t.Context(), leasehold.Keys("a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		if held := w.held(leasehold.Keys("a", "b")); !slices.Equal(held, []string{lock.Key().Partition}) {
			t.Errorf("granted %v, held %v", lock.Key(), held)
		}
		w.release(lock)
	})
}

func TestATryForOneOfSeveralKeysNamesTheFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		others := w.acquireAll(a, leasehold.Keys("a", "b"))
		_, err := b.AcquireAny(t.Context(), leasehold.Keys("b", "a"), leasehold.NoWait())
		var is *leasehold.HeldError
		if !errors.As(err, &is) || is.Key.Partition != "b" || is.Holder.Grant == "" {
			t.Errorf("error %v", err)
		}
		if got := ops(wire.sent()); !slices.Equal(got, []string{"UpdateItem", "UpdateItem"}) {
			t.Errorf("requests %v", got)
		}
		if err := others.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestATryThatIsNotAnsweredGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		wire.setFault(func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
			return refusal(400, "ThrottlingException"), nil
		})
		for name, try := range map[string]func() error{
			"all": func() error { return second(c.AcquireAll(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait())) },
			"any": func() error { return second(c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait())) },
		} {
			began := time.Now()
			err := try()
			var op *leasehold.OpError
			if took := time.Since(began); !errors.As(err, &op) || took < 10*time.Second || took > 16*time.Second {
				t.Errorf("%s: after %v: %v", name, took, err)
			}
		}
	})
}

func TestAKeyThatCannotBeHadIsLeftOut(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		w.put(keyItem("damaged"))
		lock, err := c.AcquireAny(t.Context(), leasehold.Keys("damaged", "a"))
		if err != nil {
			t.Fatal(err)
		}
		w.release(lock)
		if _, err := c.AcquireAny(t.Context(), leasehold.Keys("damaged", "none"), leasehold.IfExists()); !errors.Is(err, leasehold.ErrBadRecord) || !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("error %v", err)
		}
		if _, err := c.AcquireAll(t.Context(), leasehold.Keys("a", "damaged")); !errors.Is(err, leasehold.ErrBadRecord) {
			t.Errorf("error %v", err)
		}
		if held := w.held(leasehold.Keys("a")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
	})
}

func TestAnEndedWaitForOneOfSeveralLeavesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		keys := leasehold.Keys("a", "b")
		others := w.acquireAll(a, keys)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := b.AcquireAny(ctx, keys)
		if !errors.Is(err, leasehold.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if err := others.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wire.sent()
		elapse(time.Minute)
		if n := len(wire.sent()); n != 0 {
			t.Errorf("%d requests after the end", n)
		}
		// One that lands while its caller leaves is undone.
		wire.setFault(once(call.grants, slow(time.Second)))
		ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := b.AcquireAny(ctx, keys); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		elapse(2 * time.Second)
		if held := w.held(keys); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
		w.release(w.acquire(b, "a", leasehold.NoWait()))
		w.release(w.acquire(b, "b", leasehold.NoWait()))
	})
}

func TestAnEndedWaitForOneOfSeveralBehindItsOwnClientNamesAHolder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		held := w.acquireAll(c, leasehold.Keys("a", "b"))
		wire.sent()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.AcquireAny(ctx, leasehold.Keys("b", "a"))
		var is *leasehold.HeldError
		if !errors.As(err, &is) || is.Key.Partition != "b" || is.Holder.Grant != held.Locks()[1].Record().Grant || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if n := len(wire.sent()); n != 0 {
			t.Errorf("%d requests", n)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestGoroutinesOfOneClientShareSeveralKeys(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		keys := leasehold.Keys("a", "b", "c")
		var mu sync.Mutex
		inside, most := 0, 0
		var wg sync.WaitGroup
		for range 9 {
			wg.Go(func() {
				for range 3 {
					lock, err := c.AcquireAny(t.Context(), keys)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					inside++
					most = max(most, inside)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					inside--
					mu.Unlock()
					w.release(lock)
				}
			})
		}
		began := time.Now()
		wg.Wait()
		if took := time.Since(began); most != 3 || took > 10*time.Second {
			t.Errorf("at most %d of 3 keys were held at once; 27 seconds of work took %v", most, took)
		}
		if n := len(wire.sent()); n != 2*27 {
			t.Errorf("%d requests: whoever waits behind goroutines of its own client sends none", n)
		}
	})
}

func TestAKeyThatTheContextHoldsIsLeftOutOrShared(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		outer := w.acquire(c, "a")
		lock, err := c.AcquireAny(outer.Context(), leasehold.Keys("a", "b"))
		if err != nil || lock.Key().Partition != "b" {
			t.Fatalf("%v, error %v", lock, err)
		}
		w.release(lock)
		if lock, err = c.AcquireAny(outer.Context(), leasehold.Keys("a", "b"), leasehold.Reentrant()); err != nil || lock.Token() != outer.Token() {
			t.Fatalf("%v, error %v", lock, err)
		}
		w.release(lock)
		if outer.Err() != nil {
			t.Error("the outer handle has ended")
		}
		w.release(outer)
	})
}

func TestAKeyWhoseGrantHadNoAnswerIsStayedWithThroughThrottling(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		var n atomic.Int64
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			switch n.Add(1) {
			case 1:
				return loseReply(ctx, c, next)
			case 2:
				return refusal(400, "ThrottlingException"), nil
			}
			return next()
		})
		lock, err := c.AcquireAny(t.Context(), leasehold.Keys("a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		if lock.Key().Partition != "a" {
			t.Errorf("granted %v, though a was taken", lock.Key())
		}
		w.release(lock)
	})
}

func TestASessionThatMayNotBeReadEndsTheWaitForOneOfSeveral(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder, _ := w.client(sharedConfig())
		w.acquire(holder, "a")
		c, wire := w.client(config())
		wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.op == "GetItem" {
				return refusal(400, "AccessDeniedException"), nil
			}
			return next()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var op *leasehold.OpError
		if _, err := c.AcquireAny(ctx, leasehold.Keys("a")); !errors.As(err, &op) || ctx.Err() != nil {
			t.Errorf("error %v", err)
		}
		_ = holder.Close(t.Context())
	})
}

func TestWithoutRenewalNothingIsLeftToUndoWhenOneOfSeveralIsGranted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.grants() && strings.Contains(string(c.body), `"a"`) {
				return loseReply(ctx, c, func() (*http.Response, error) { return nil, errReset })
			}
			return next()
		})
		lock, err := c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.WithoutRenewal(), leasehold.NoWait())
		if err != nil {
			t.Fatal(err)
		}
		wire.sent()
		elapse(10 * time.Second)
		if n := len(wire.sent()); n != 0 {
			t.Errorf("%d requests after it returned", n)
		}
		w.release(lock)
	})
}

func TestATurnOfOtherProcessesStaysTheirsWhenItIsPassedOn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := config()
		cfg.LocalHandOver, cfg.PollMin, cfg.PollMax = 2, time.Second, time.Second
		c, _ := w.client(cfg)
		ask := func(keys ...string) <-chan *leasehold.Lock {
			granted := make(chan *leasehold.Lock, 1)
			go func() {
				lock, err := c.AcquireAny(t.Context(), leasehold.Keys(keys...))
				if err != nil {
					t.Error(err)
				}
				granted <- lock
			}()
			elapse(time.Millisecond)
			return granted
		}
		a, b := <-ask("a"), <-ask("b")
		next := ask("a")
		w.release(a)
		a = <-next // the first that follows at once
		first, second := ask("a", "b"), ask("a", "b")
		w.release(a)
		elapse(500 * time.Millisecond)
		w.release(b)
		began := time.Now()
		b = <-first // which had the turn of a, and passes it on
		if b.Key().Partition != "b" {
			t.Errorf("%v granted", b.Key())
		}
		a = <-second
		if took := time.Since(began); took < time.Second || took > 2*time.Second {
			t.Errorf("%v granted after %v: other processes have 2s from its release to take it", a.Key(), took)
		}
		w.release(a)
		w.release(b)
	})
}

func TestWhatIsGrantedAfterTheWaitIsGivenBackBeforeAnythingElseIsUndone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		other, _ := w.client(config())
		w.acquire(other, "a")
		c, wire := w.client(config())
		var lost atomic.Bool
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			a := strings.Contains(string(c.body), `"a"`)
			switch {
			case c.grants() && a && !lost.Swap(true):
				return nil, errReset
			case c.grants() && !a:
				return slow(time.Second)(context.WithoutCancel(ctx), c, next)
			case c.releases() && a:
				return hang(ctx)
			}
			return next()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := c.AcquireAny(ctx, leasehold.Keys("a", "b"), leasehold.WithoutRenewal()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if held := w.held(leasehold.Keys("b")); len(held) > 0 || len(c.Held()) > 0 {
			t.Errorf("left held: %v", held)
		}
		_, _ = c.Close(t.Context()), other.Close(t.Context())
	})
}

func TestATryForOneOfSeveralTakesOverWhatItsClientWatchedForALease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder, wire := w.client(config())
		w.acquireAll(holder, leasehold.Keys("a", "b"))
		wire.setFault(cut)
		c, _ := w.client(config())
		for _, wait := range []time.Duration{0, 19 * time.Second} {
			elapse(wait)
			if _, err := c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) {
				t.Fatalf("not yet a lease: %v", err)
			}
		}
		elapse(time.Second)
		lock, err := c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait())
		if err != nil {
			t.Fatal(err)
		}
		w.release(lock)
	})
}
