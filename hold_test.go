package leasehold_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
)

func TestOneLostReplyOfARenewalLosesNothing(t *testing.T) { // dynamolock, awslabs, python: heartbeats stop for good
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job")
		wire.setFault(once(call.renews, loseReply))
		elapse(2 * time.Minute)
		if err := lock.Err(); err != nil {
			t.Fatalf("lost: %v", err)
		}
		if lock.Record().Version != textOf(w.item("job"), "recordVersionNumber") {
			t.Error("the client does not know its own version")
		}
		w.release(lock)
	})
}

func TestARetriedRenewalCarriesANewVersion(t *testing.T) { // dynamolock: the same version, extending only its own belief
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job")
		seen := map[string]bool{}
		var mu sync.Mutex
		wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.renews() {
				_, err := next()
				mu.Lock()
				defer mu.Unlock()
				v := textOf(w.item("job"), "recordVersionNumber")
				if seen[v] {
					t.Errorf("version %s was sent twice", v)
				}
				seen[v] = true
				return nil, errors.Join(err, errReset)
			}
			return next()
		})
		elapse(16 * time.Second)
		if len(seen) < 5 {
			t.Errorf("%d attempts", len(seen))
		}
		wire.setFault(nil)
		_ = lock.Release(t.Context())
	})
}

func TestTrustCountsFromBeforeTheRenewalWasSent(t *testing.T) { // python_dynamodb_lock stamps after the call
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		wire.setFault(once(call.grants, slow(2*time.Second)))
		sent := time.Now()
		lock := w.acquire(c, "job", leasehold.WithoutRenewal())
		if want := sent.Add(18 * time.Second); !lock.TrustedUntil().Equal(want) {
			t.Errorf("after a slow grant trusted until %v, want %v", lock.TrustedUntil(), want)
		}
		wire.setFault(once(call.renews, slow(time.Second)))
		sent = time.Now()
		if err := lock.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := sent.Add(18 * time.Second); !lock.TrustedUntil().Equal(want) {
			t.Errorf("after a slow renewal trusted until %v, want %v", lock.TrustedUntil(), want)
		}
		w.release(lock)
	})
}

func TestRenewalsGoOnAfterTrouble(t *testing.T) { // python_dynamodb_lock never heartbeats again after "in danger"
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job")
		for range 5 {
			wire.setFault(cut)
			elapse(11 * time.Second)
			wire.setFault(nil)
			elapse(6 * time.Second)
			if err := lock.Err(); err != nil {
				t.Fatalf("lost: %v", err)
			}
		}
		w.release(lock)
	})
}

func TestTrustEndsAMarginBeforeAnybodyElseCanBeGranted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, wire := w.client(config())
		b, _ := w.client(config())
		lock := w.acquire(a, "job")
		began := time.Now()
		wire.setFault(cut)
		ended := make(chan time.Time, 1)
		context.AfterFunc(lock.Context(), func() { ended <- time.Now() })
		next := w.acquire(b, "job")
		if took := (<-ended).Sub(began); took != 18*time.Second {
			t.Errorf("trust ended after %v", took)
		}
		var lost *leasehold.LostError
		if err := context.Cause(lock.Context()); !errors.As(err, &lost) || lost.Reason != leasehold.LostExpired || lost.Token != lock.Token() {
			t.Errorf("cause %v", err)
		}
		w.release(next)
		_ = lock.Release(t.Context())
	})
}

// clocks are a test's own, on top of the bubble's.
type clocks struct {
	began      time.Time
	mono, boot atomic.Int64 // ahead by
}

func newClocks(c *leasehold.Client) *clocks {
	k := &clocks{began: time.Now()}
	leasehold.SetClocks(c, func() (mono, boot time.Duration) {
		since := time.Since(k.began)
		return since + time.Duration(k.mono.Load()), since + time.Duration(k.boot.Load())
	})
	return k
}

func TestTheFirstLookAfterAPauseIsToldTheTruth(t *testing.T) {
	for name, look := range map[string]func(*leasehold.Lock, context.Context) error{
		"Lock.Err":      func(l *leasehold.Lock, _ context.Context) error { return l.Err() },
		"Context.Err":   func(l *leasehold.Lock, _ context.Context) error { return l.Context().Err() },
		"context.Cause": func(l *leasehold.Lock, _ context.Context) error { return context.Cause(l.Context()) },
		"Context.Done": func(l *leasehold.Lock, _ context.Context) error {
			select {
			case <-l.Context().Done():
				return context.Canceled
			default:
				return nil
			}
		},
		"Bind.Err":   func(_ *leasehold.Lock, bound context.Context) error { return bound.Err() },
		"Bind.Cause": func(_ *leasehold.Lock, bound context.Context) error { return context.Cause(bound) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, _ := w.client(config())
				k := newClocks(c)
				lock := w.acquire(c, "job")
				bound, cancel := lock.Bind(t.Context())
				defer cancel()
				if err := look(lock, bound); err != nil {
					t.Fatalf("before the pause: %v", err)
				}
				k.boot.Store(int64(19 * time.Second)) // suspended: no timer has run
				switch err := look(lock, bound); {
				case err == nil:
					t.Fatal("after the pause the lock is believed in")
				case strings.HasSuffix(name, "Cause") && !errors.Is(err, leasehold.ErrLost):
					t.Errorf("the first look is not told why: %v", err)
				}
				var lost *leasehold.LostError
				if !errors.As(lock.Err(), &lost) || lost.Reason != leasehold.LostPaused {
					t.Errorf("error %v", lock.Err())
				}
				_ = lock.Release(t.Context())
			})
		})
	}
}

func TestALossIsAPauseOnlyIfNoRenewalWasBegun(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		k := newClocks(c)
		var lost *leasehold.LostError

		left := w.acquire(c, "left alone", leasehold.WithoutRenewal())
		elapse(20 * time.Second)
		if !errors.As(left.Err(), &lost) || lost.Reason != leasehold.LostExpired {
			t.Errorf("without renewal: %v", left.Err())
		}

		renewed := w.acquire(c, "renewed")
		wire.setFault(once(call.renews, loseReply))
		elapse(20 * time.Second) // one renewal fails, others succeed
		k.boot.Store(int64(time.Hour))
		if !errors.As(renewed.Err(), &lost) || lost.Reason != leasehold.LostPaused || lost.Err != nil {
			t.Errorf("paused after renewals: %v", renewed.Err())
		}
		_ = left.Release(t.Context())
		_ = renewed.Release(t.Context())
	})
}

func TestALookAfterAPauseBringsTheEndForward(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		k := newClocks(c)
		lock := w.acquire(c, "job", leasehold.WithoutRenewal())
		derived, cancel := context.WithCancel(lock.Context())
		defer cancel()
		k.boot.Store(int64(10 * time.Second)) // suspended, not past the lease
		if err := lock.Err(); err != nil {
			t.Fatal(err)
		}
		elapse(8 * time.Second)
		if derived.Err() == nil {
			t.Error("a derived context outlives the trust")
		}
		_ = lock.Release(t.Context())
	})
}

func TestAnExpiryWarningIsGivenOnceEachTimeTrustRunsShort(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		var warned atomic.Int64
		lock := w.acquire(c, "job", leasehold.WithoutRenewal(),
			leasehold.WithExpiryWarning(5*time.Second, func(*leasehold.Lock) { warned.Add(1) }))
		for want := range int64(3) {
			if got := warned.Load(); got != want {
				t.Errorf("warned %d times, want %d", got, want)
			}
			elapse(15 * time.Second)
			if err := lock.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.release(lock)
	})
}

func TestAnEndedTrustDoesNotReviveByALateReply(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		k := newClocks(c)
		lock := w.acquire(c, "job", leasehold.WithoutRenewal())
		elapse(17500 * time.Millisecond)
		wire.setFault(once(call.renews, func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			k.boot.Store(int64(time.Second)) // suspended while the reply was under way: no timer has run
			return next()
		}))
		if err := lock.Renew(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("renew: %v", err)
		}
		if err := lock.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("believed in: %v", err)
		}
		_ = lock.Release(t.Context())
	})
}

func TestAWallClockStepDoesNotMakeAnObserverSteal(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, _ := w.client(config())
		k := newClocks(b)
		lock := w.acquire(a, "job")
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatal(err)
		}
		k.boot.Store(int64(time.Hour))
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("after a step of an hour: %v", err)
		}
		w.release(lock)
	})
}

func TestALostLockSaysWhoHasIt(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(w *world)
		reason  leasehold.LostReason
	}{
		"replaced": {func(w *world) {
			w.update("job", map[string]types.AttributeValue{"recordVersionNumber": str("x"), "grantId": str("x"), "ownerName": str("test/aaaaaaaaaaaaaaaaaaaaaaaaaa")})
		}, leasehold.LostReplaced},
		"resumed elsewhere": {func(w *world) {
			w.update("job", map[string]types.AttributeValue{"recordVersionNumber": str("x")})
		}, leasehold.LostReplaced},
		"broken": {func(w *world) {
			w.update("job", map[string]types.AttributeValue{"recordVersionNumber": str("x"), "isReleased": str("1")})
		}, leasehold.LostBroken},
		// By hand, with the version left as it was.
		"marked released": {func(w *world) {
			w.update("job", map[string]types.AttributeValue{"isReleased": str("1")})
		}, leasehold.LostBroken},
		"given to another": {func(w *world) {
			w.update("job", map[string]types.AttributeValue{"ownerName": str("test/aaaaaaaaaaaaaaaaaaaaaaaaaa")})
		}, leasehold.LostReplaced},
		"another grant": {func(w *world) {
			w.update("job", map[string]types.AttributeValue{"grantId": str("x")})
		}, leasehold.LostReplaced},
		"deleted": {func(w *world) { w.delete("job") }, leasehold.LostBroken},
		"damaged": {func(w *world) {
			w.update("job", map[string]types.AttributeValue{"recordVersionNumber": nil})
		}, leasehold.LostBroken},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				var events []leasehold.Event
				cfg := config()
				cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
					if e.Kind == leasehold.EventLost {
						events = append(events, e)
					}
				}
				c, wire := w.client(cfg)
				lock := w.acquire(c, "job")
				tc.happens(w)
				before := w.item("job")
				elapse(6 * time.Second)
				var lost *leasehold.LostError
				if !errors.As(lock.Err(), &lost) || lost.Reason != tc.reason {
					t.Fatalf("error %v", lock.Err())
				}
				if len(events) != 1 {
					t.Errorf("%d events", len(events))
				}
				wire.sent()
				if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
					t.Errorf("release: %v", err)
				}
				if n := len(wire.sent()); n != 0 {
					t.Errorf("%d requests to release what is gone", n)
				}
				if after := w.item("job"); len(after) != len(before) || textOf(after, "recordVersionNumber") != textOf(before, "recordVersionNumber") {
					t.Errorf("the loser changed the record to %v", after)
				}
			})
		})
	}
}

func TestAnExpiryWarningComesBeforeTheLossAndAfterALossNobodyLookedAt(t *testing.T) { // dynamolock: silent if it wakes after the expiry
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		var warned []time.Time
		began := time.Now()
		warning := leasehold.WithExpiryWarning(5*time.Second, func(*leasehold.Lock) { warned = append(warned, time.Now()) })
		lock := w.acquire(c, "job", warning)
		elapse(time.Minute)
		if len(warned) != 0 {
			t.Fatalf("warned without need after %v", warned[0].Sub(began))
		}
		wire.setFault(cut)
		until := lock.TrustedUntil()
		elapse(time.Minute)
		if len(warned) != 1 || !warned[0].Equal(until.Add(-5*time.Second)) {
			t.Errorf("warned %d times, trust ended at %v", len(warned), until)
		}
		wire.setFault(nil)
		_ = lock.Release(t.Context())

		warned = nil
		k := newClocks(c)
		paused := w.acquire(c, "other", warning)
		k.boot.Store(int64(time.Hour)) // past the warning and the lease at once
		elapse(10 * time.Second)
		if len(warned) != 1 {
			t.Errorf("after a pause warned %d times", len(warned))
		}
		_ = paused.Release(t.Context())
	})
}

func TestNoRenewalIsSentAfterTrustHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job")
		ended := make(chan struct{})
		context.AfterFunc(lock.Context(), func() { close(ended) })
		wire.setFault(func(ctx context.Context, c call, _ func() (*http.Response, error)) (*http.Response, error) {
			select {
			case <-ended:
				if c.renews() {
					t.Errorf("renewed after the end")
				}
			default:
			}
			return refusal(500, "InternalServerError"), nil
		})
		elapse(5 * time.Minute)
		_ = lock.Release(t.Context())
	})
}

func TestThousandsOfLocksAreRenewedInTime(t *testing.T) { // dynamolock: serial, half of them expire
	inBubble(t, func(t *testing.T, w *world) {
		const n = 2000
		c, wire := w.client(config())
		var locks []*leasehold.Lock
		for i := range n {
			locks = append(locks, w.acquire(c, fmt.Sprintf("job/%d", i)))
		}
		var now, most atomic.Int64
		wire.setFault(func(ctx context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(5 * time.Millisecond)
			return next()
		})
		elapse(time.Minute)
		for _, l := range locks {
			if l.Err() != nil {
				t.Fatalf("%v: %v", l.Key(), l.Err())
			}
		}
		if m := most.Load(); m > 128 {
			t.Errorf("%d renewals at a time", m)
		}
		if s := c.Stats(); s.Held != n || s.MinRemaining < 10*time.Second {
			t.Errorf("stats %+v", s)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAHungRenewalDelaysNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		a, b := w.acquire(c, "a"), w.acquire(c, "b")
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.renews() && bytes.Contains(c.body, []byte(`"S":"a"`)) {
				return hang(ctx)
			}
			return next()
		})
		elapse(time.Minute)
		if a.Err() == nil || b.Err() != nil {
			t.Errorf("a: %v, b: %v", a.Err(), b.Err())
		}
		wire.setFault(nil)
		_ = a.Release(t.Context())
		w.release(b)
	})
}

func TestAShorterLeaseEndsTrustBeforeItIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
		wire.setFault(once(call.renews, func(ctx context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			_, _ = next()
			return hang(ctx)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := lock.Renew(ctx, leasehold.WithLease(10*time.Second)); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Fatalf("error %v", err)
		}
		if left := time.Until(lock.TrustedUntil()); left > 9*time.Second {
			t.Errorf("%v of trust left under a lease of 10s", left)
		}
		elapse(10 * time.Second)
		if lock.Err() == nil {
			t.Error("believed in past the shorter lease")
		}
		_ = lock.Release(t.Context())
	})
}

func TestEndsOfContexts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		lock, err := c.Acquire(ctx, "job")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if lock.Err() != nil || lock.Context().Value(key{}) != "value" {
			t.Errorf("the end of Acquire's context ended the lock: %v", lock.Err())
		}
		if _, ok := lock.Context().Deadline(); ok {
			t.Error("a deadline")
		}
		derived, cancelDerived := context.WithCancel(lock.Context())
		defer cancelDerived()
		bound, cancelBound := lock.Bind(context.WithValue(t.Context(), key{}, "bound"))
		defer cancelBound()
		if bound.Value(key{}) != "bound" {
			t.Error("Bind lost the values")
		}
		w.release(lock)
		for name, ctx := range map[string]context.Context{"Context": lock.Context(), "derived": derived, "Bind": bound} {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), leasehold.ErrReleased) {
				t.Errorf("%s: cause %v", name, context.Cause(ctx))
			}
		}
	})
}

func TestTrustEndsBeforeTheReleaseIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job")
		wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.releases() && lock.Err() == nil {
				t.Error("the release was sent while the lock was believed in")
			}
			return next()
		})
		w.release(lock)
	})
}

func TestDo(t *testing.T) {
	failed := errors.New("failed")
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		free := func(name string) {
			t.Helper()
			synctest.Wait()
			if textOf(w.item("job"), "isReleased") != "1" {
				t.Errorf("%s: not released", name)
			}
		}
		do := func(fn func(ctx context.Context, l *leasehold.Lock) error) error { return c.Do(t.Context(), "job", fn) }

		if err := do(func(context.Context, *leasehold.Lock) error { return nil }); err != nil {
			t.Errorf("success: %v", err)
		}
		free("success")
		if err := do(func(context.Context, *leasehold.Lock) error { return failed }); !errors.Is(err, failed) || errors.Is(err, leasehold.ErrNotRun) {
			t.Errorf("failure: %v", err)
		}
		free("failure")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = do(func(context.Context, *leasehold.Lock) error { panic("fn") })
		}()
		free("panic")
		exited := make(chan struct{})
		go func() {
			defer close(exited)
			_ = do(func(context.Context, *leasehold.Lock) error { runtime.Goexit(); return nil })
		}()
		<-exited
		free("Goexit")

		err := do(func(ctx context.Context, l *leasehold.Lock) error {
			w.update("job", map[string]types.AttributeValue{"recordVersionNumber": str("x"), "isReleased": str("1")})
			<-ctx.Done()
			return failed
		})
		if !errors.Is(err, failed) || !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("lost: %v", err)
		}

		other, _ := w.client(config())
		lock := w.acquire(other, "job")
		ran := false
		err = c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { ran = true; return nil }, leasehold.NoWait())
		if ran || !errors.Is(err, leasehold.ErrNotRun) || !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("held: %v", err)
		}
		w.release(lock)

		err = do(func(context.Context, *leasehold.Lock) error { wire.setFault(cut); return nil })
		if err != nil {
			t.Errorf("a release that cannot reach DynamoDB: %v", err)
		}
		wire.setFault(nil)
	})
}

func TestAnEndedContextInDoStopsTheFunctionNotTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		ctx, cancel := context.WithCancel(t.Context())
		err := c.Do(ctx, "job", func(ctx context.Context, l *leasehold.Lock) error {
			cancel()
			<-ctx.Done()
			time.Sleep(time.Minute) // it takes its time to stop
			if err := l.Err(); err != nil {
				t.Errorf("the lease ended while the function ran: %v", err)
			}
			return nil
		})
		if err != nil || textOf(w.item("job"), "isReleased") != "1" {
			t.Errorf("error %v, record %v", err, w.item("job"))
		}
	})
}

func TestTrustIsBoundByALaterShorterLeaseThatMayLandYet(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
		n := 0
		var late func() (*http.Response, error)
		wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if !c.renews() {
				return next()
			}
			n++
			switch n {
			case 1:
				_, _ = next()
			case 50:
				late = next
			}
			return nil, errReset
		})
		renew := func(opts ...leasehold.RenewOption) {
			before := n
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { _ = lock.Renew(ctx, opts...); close(done) }()
			synctest.Wait()
			cancel()
			<-done
			synctest.Wait()
			if n != before+1 {
				t.Fatalf("%d attempts", n-before)
			}
		}
		for range 49 {
			renew()
		}
		renew(leasehold.WithLease(2 * time.Second))
		renew(leasehold.WithLease(time.Hour))
		left := time.Until(lock.TrustedUntil())
		_, _ = late() // the shorter lease lands
		if got := textOf(w.item("job"), "leaseDuration"); got != "2000" {
			t.Fatalf("lease %s", got)
		}
		if left > 2*time.Second {
			t.Errorf("trusted for %v under a lease of 2s", left)
		}
		_ = lock.Release(t.Context())
	})
}

func TestAShorterLeaseIsRenewedInItsOwnTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		lock := w.acquire(c, "job")
		elapse(6 * time.Second)
		if err := lock.Renew(t.Context(), leasehold.WithLease(2*time.Second)); err != nil {
			t.Fatal(err)
		}
		elapse(time.Minute)
		if err := lock.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		_ = lock.Release(t.Context())
	})
}

func TestAShorterLeaseThatMayHaveLandedIsRenewedInItsOwnTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job")
		elapse(6 * time.Second)
		wire.setFault(once(call.renews, loseReply))
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		_ = lock.Renew(ctx, leasehold.WithLease(2*time.Second))
		elapse(time.Minute)
		if err := lock.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		_ = lock.Release(t.Context())
	})
}

func TestAnExpiryWarningComesAtOnceWhenAShorterLeaseFallsShort(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		var warned int
		lock := w.acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour), leasehold.WithExpiryWarning(time.Minute, func(*leasehold.Lock) { warned++ }))
		if err := lock.Renew(t.Context(), leasehold.WithLease(30*time.Second)); err != nil {
			t.Fatal(err)
		}
		elapse(time.Second)
		if warned != 1 {
			t.Errorf("warned %d times", warned)
		}
		_ = lock.Release(t.Context())
	})
}

func TestALeaseMayBeForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		lock, err := c.Acquire(t.Context(), "job", leasehold.WithLease(math.MaxInt64))
		if err != nil {
			t.Fatalf("%v: %v", err, textOf(w.item("job"), "leaseDuration"))
		}
		if lock.Err() != nil {
			t.Error(lock.Err())
		}
		w.release(lock)
	})
}

func TestEventsOfAHeldLockCarryItsCallersValuesWithoutTheirEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := config()
		cfg.OnEvent = func(ctx context.Context, e leasehold.Event) {
			if ctx.Err() != nil {
				t.Errorf("%s: the context has ended: %v", e.Kind, ctx.Err())
			}
		}
		c, _ := w.client(cfg)
		lock := w.acquire(c, "job")
		elapse(10 * time.Second)
		w.release(lock)
	})
}

func TestARenewalComesThroughAfterAHundredWithoutAnAnswer(t *testing.T) {
	for name, landed := range map[string]int{"none has landed": 0, "the first has landed": 1, "the thirtieth has landed": 30} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.client(config())
				lock := w.acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
				n := 0
				wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
					if !c.renews() {
						return next()
					}
					if n++; n == landed {
						_, _ = next()
					}
					return nil, errReset
				})
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				if err := lock.Renew(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("no answer: %v", err)
				}
				synctest.Wait()
				if n < 110 {
					t.Fatalf("%d attempts", n)
				}
				wire.setFault(nil)
				if err := lock.Renew(t.Context()); err != nil {
					t.Errorf("answered: %v", err)
				}
				w.release(lock)
			})
		})
	}
}

func TestALockThatAnotherHadMeanwhileIsReplacedNotBroken(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		lock := w.acquire(c, "job", leasehold.WithoutRenewal())
		w.update("job", map[string]types.AttributeValue{"recordVersionNumber": str("x"), "grantId": str("x"), "isReleased": str("1")})
		var lost *leasehold.LostError
		if err := lock.Renew(t.Context()); !errors.As(err, &lost) || lost.Reason != leasehold.LostReplaced {
			t.Errorf("error %v", err)
		}
		_ = lock.Release(t.Context())
	})
}

func TestAThrottledRenewalIsRepeatedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job")
		var sent []time.Time
		wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.renews() {
				if sent = append(sent, time.Now()); len(sent) == 1 {
					return refusal(400, "TransactionConflictException"), nil
				}
			}
			return next()
		})
		elapse(6 * time.Second)
		if len(sent) < 2 || !sent[1].Equal(sent[0]) {
			t.Errorf("sent at %v", sent)
		}
		w.release(lock)
	})
}

func TestARenewalThatHangsIsRepeatedWithinTwoSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job", leasehold.WithoutRenewal())
		wire.setFault(once(call.renews, cut))
		began := time.Now()
		if err := lock.Renew(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 2*time.Second || took > 2100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.release(lock)
	})
}

// showNothing takes the old item out of a refusal, as an engine does that does
// not know ReturnValuesOnConditionCheckFailure.
func showNothing(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
	res, err := next()
	if err != nil || res.StatusCode != http.StatusBadRequest {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || !bytes.Contains(body, []byte("ConditionalCheckFailedException")) {
		res.Body = io.NopCloser(bytes.NewReader(body))
		return res, err
	}
	return refusal(400, "ConditionalCheckFailedException"), nil
}

func TestAnEngineThatShowsNoOldItemIsAsked(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		wire.setFault(showNothing)
		lock := w.acquire(a, "job", leasehold.WithoutRenewal())
		var held *leasehold.HeldError
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.As(err, &held) || held.Holder.Token != lock.Token() {
			t.Errorf("held: %v", err)
		}
		if sent := wire.sent(); len(sent) != 2 || sent[1].op != "GetItem" {
			t.Errorf("sent %v", sent)
		}
		w.release(lock)

		lost := w.acquire(b, "job", leasehold.WithoutRenewal())
		w.delete("job")
		next := w.acquire(a, "job")
		var gone *leasehold.LostError
		if err := lost.Renew(t.Context()); !errors.As(err, &gone) || gone.Reason != leasehold.LostReplaced || gone.By.Token != next.Token() {
			t.Errorf("lost: %v", err)
		}
		_ = lost.Release(t.Context())
		w.release(next)

		if _, err := b.Acquire(t.Context(), "none", leasehold.IfExists()); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("none: %v", err)
		}
	})
}
