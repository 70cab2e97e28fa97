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
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestOneLostReplyOfARenewalLosesNothing(t *testing.T) { // dynamolock, awslabs, python: heartbeats stop for good
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Once(lab.Call.Renews, lab.LoseReply))
		lab.Elapse(2 * time.Minute)
		if err := lock.Err(); err != nil {
			t.Fatalf("lost: %v", err)
		}
		if lock.Record().Version != lab.Text(w.Item("job"), "recordVersionNumber") {
			t.Error("the client does not know its own version")
		}
		w.Release(lock)
	})
}

func TestARetriedRenewalCarriesANewVersion(t *testing.T) { // dynamolock: the same version, extending only its own belief
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		seen := map[string]bool{}
		var mu sync.Mutex
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Renews() {
				_, err := r.Send()
				mu.Lock()
				defer mu.Unlock()
				v := lab.Text(w.Item("job"), "recordVersionNumber")
				if seen[v] {
					t.Errorf("version %s was sent twice", v)
				}
				seen[v] = true
				return nil, errors.Join(err, lab.ErrReset)
			}
			return r.Send()
		})
		lab.Elapse(16 * time.Second)
		if len(seen) < 5 {
			t.Errorf("%d attempts", len(seen))
		}
		wire.SetFault(nil)
		_ = lock.Release(t.Context())
	})
}

func TestTrustCountsFromBeforeTheRenewalWasSent(t *testing.T) { // python_dynamodb_lock stamps after the call
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(2*time.Second)))
		sent := time.Now()
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		if want := sent.Add(18 * time.Second); !lock.TrustedUntil().Equal(want) {
			t.Errorf("after a slow grant trusted until %v, want %v", lock.TrustedUntil(), want)
		}
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(time.Second)))
		sent = time.Now()
		if err := lock.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := sent.Add(18 * time.Second); !lock.TrustedUntil().Equal(want) {
			t.Errorf("after a slow renewal trusted until %v, want %v", lock.TrustedUntil(), want)
		}
		w.Release(lock)
	})
}

func TestRenewalsGoOnAfterTrouble(t *testing.T) { // python_dynamodb_lock never heartbeats again after "in danger"
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		for range 5 {
			wire.SetFault(lab.Cut)
			lab.Elapse(11 * time.Second)
			wire.SetFault(nil)
			lab.Elapse(6 * time.Second)
			if err := lock.Err(); err != nil {
				t.Fatalf("lost: %v", err)
			}
		}
		w.Release(lock)
	})
}

func TestTrustEndsAMarginBeforeAnybodyElseCanBeGranted(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		began := time.Now()
		wire.SetFault(lab.Cut)
		ended := make(chan time.Time, 1)
		context.AfterFunc(lock.Context(), func() { ended <- time.Now() })
		next := w.Acquire(b, "job")
		if took := (<-ended).Sub(began); took != 18*time.Second {
			t.Errorf("trust ended after %v", took)
		}
		var lost *leasehold.LostError
		if err := context.Cause(lock.Context()); !errors.As(err, &lost) || lost.Reason != leasehold.LostExpired || lost.Token != lock.Token() {
			t.Errorf("cause %v", err)
		}
		w.Release(next)
		_ = lock.Release(t.Context())
	})
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
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				k := &lab.Jumps{}
				c, _ := w.Client(lab.Config(), k.Edit)
				lock := w.Acquire(c, "job")
				bound, cancel := lock.Bind(t.Context())
				defer cancel()
				if err := look(lock, bound); err != nil {
					t.Fatalf("before the pause: %v", err)
				}
				k.Boot.Store(int64(19 * time.Second)) // suspended: no timer has run
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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.Config(), k.Edit)
		var lost *leasehold.LostError

		left := w.Acquire(c, "left alone", leasehold.WithoutRenewal())
		lab.Elapse(20 * time.Second)
		if !errors.As(left.Err(), &lost) || lost.Reason != leasehold.LostExpired {
			t.Errorf("without renewal: %v", left.Err())
		}

		renewed := w.Acquire(c, "renewed")
		wire.SetFault(lab.Once(lab.Call.Renews, lab.LoseReply))
		lab.Elapse(20 * time.Second) // one renewal fails, others succeed
		k.Boot.Store(int64(time.Hour))
		if !errors.As(renewed.Err(), &lost) || lost.Reason != leasehold.LostPaused || lost.Err != nil {
			t.Errorf("paused after renewals: %v", renewed.Err())
		}
		_ = left.Release(t.Context())
		_ = renewed.Release(t.Context())
	})
}

func TestALookAfterAPauseBringsTheEndForward(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, _ := w.Client(lab.Config(), k.Edit)
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		derived, cancel := context.WithCancel(lock.Context())
		defer cancel()
		k.Boot.Store(int64(10 * time.Second)) // suspended, not past the lease
		if err := lock.Err(); err != nil {
			t.Fatal(err)
		}
		lab.Elapse(8 * time.Second)
		if derived.Err() == nil {
			t.Error("a derived context outlives the trust")
		}
		_ = lock.Release(t.Context())
	})
}

func TestAnExpiryWarningIsGivenOnceEachTimeTrustRunsShort(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		var warned atomic.Int64
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal(),
			leasehold.WithExpiryWarning(5*time.Second, func(*leasehold.Lock) { warned.Add(1) }))
		for want := range int64(3) {
			if got := warned.Load(); got != want {
				t.Errorf("warned %d times, want %d", got, want)
			}
			lab.Elapse(15 * time.Second)
			if err := lock.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.Release(lock)
	})
}

func TestAnEndedTrustDoesNotReviveByALateReply(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.Config(), k.Edit)
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		lab.Elapse(17500 * time.Millisecond)
		wire.SetFault(lab.Once(lab.Call.Renews, func(r *lab.Request) (*http.Response, error) {
			k.Boot.Store(int64(time.Second)) // suspended while the reply was under way: no timer has run
			return r.Send()
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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		k := &lab.Jumps{}
		b, _ := w.Client(lab.Config(), k.Edit)
		lock := w.Acquire(a, "job")
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatal(err)
		}
		k.Boot.Store(int64(time.Hour))
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("after a step of an hour: %v", err)
		}
		w.Release(lock)
	})
}

func TestALostLockSaysWhoHasIt(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(w *lab.World)
		reason  leasehold.LostReason
	}{
		"replaced": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "grantId": lab.Str("x"), "ownerName": lab.Str("test/aaaaaaaaaaaaaaaaaaaaaaaaaa")})
		}, leasehold.LostReplaced},
		"resumed elsewhere": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x")})
		}, leasehold.LostReplaced},
		"broken": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "isReleased": lab.Str("1")})
		}, leasehold.LostBroken},
		// By hand, with the version left as it was.
		"marked released": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"isReleased": lab.Str("1")})
		}, leasehold.LostBroken},
		"given to another": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Str("test/aaaaaaaaaaaaaaaaaaaaaaaaaa")})
		}, leasehold.LostReplaced},
		"another grant": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"grantId": lab.Str("x")})
		}, leasehold.LostReplaced},
		"deleted": {func(w *lab.World) { w.Delete("job") }, leasehold.LostBroken},
		"damaged": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": nil})
		}, leasehold.LostBroken},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				var events []leasehold.Event
				cfg := lab.Config()
				cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
					if e.Kind == leasehold.EventLost {
						events = append(events, e)
					}
				}
				c, wire := w.Client(cfg)
				lock := w.Acquire(c, "job")
				tc.happens(w)
				before := w.Item("job")
				lab.Elapse(6 * time.Second)
				var lost *leasehold.LostError
				if !errors.As(lock.Err(), &lost) || lost.Reason != tc.reason {
					t.Fatalf("error %v", lock.Err())
				}
				if len(events) != 1 {
					t.Errorf("%d events", len(events))
				}
				wire.Sent()
				if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
					t.Errorf("release: %v", err)
				}
				if n := len(wire.Sent()); n != 0 {
					t.Errorf("%d requests to release what is gone", n)
				}
				if after := w.Item("job"); len(after) != len(before) || lab.Text(after, "recordVersionNumber") != lab.Text(before, "recordVersionNumber") {
					t.Errorf("the loser changed the record to %v", after)
				}
			})
		})
	}
}

func TestAnExpiryWarningComesBeforeTheLossAndAfterALossNobodyLookedAt(t *testing.T) { // dynamolock: silent if it wakes after the expiry
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.Config(), k.Edit)
		var warned []time.Time
		began := time.Now()
		warning := leasehold.WithExpiryWarning(5*time.Second, func(*leasehold.Lock) { warned = append(warned, time.Now()) })
		lock := w.Acquire(c, "job", warning)
		lab.Elapse(time.Minute)
		if len(warned) != 0 {
			t.Fatalf("warned without need after %v", warned[0].Sub(began))
		}
		wire.SetFault(lab.Cut)
		until := lock.TrustedUntil()
		lab.Elapse(time.Minute)
		if len(warned) != 1 || !warned[0].Equal(until.Add(-5*time.Second)) {
			t.Errorf("warned %d times, trust ended at %v", len(warned), until)
		}
		wire.SetFault(nil)
		_ = lock.Release(t.Context())

		warned = nil
		paused := w.Acquire(c, "other", warning)
		k.Boot.Store(int64(time.Hour)) // past the warning and the lease at once
		lab.Elapse(10 * time.Second)
		if len(warned) != 1 {
			t.Errorf("after a pause warned %d times", len(warned))
		}
		_ = paused.Release(t.Context())
	})
}

func TestNoRenewalIsSentAfterTrustHasEnded(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		ended := make(chan struct{})
		context.AfterFunc(lock.Context(), func() { close(ended) })
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			select {
			case <-ended:
				if r.Renews() {
					t.Errorf("renewed after the end")
				}
			default:
			}
			return lab.Refusal(500, "InternalServerError"), nil
		})
		lab.Elapse(5 * time.Minute)
		_ = lock.Release(t.Context())
	})
}

func TestThousandsOfLocksAreRenewedInTime(t *testing.T) { // dynamolock: serial, half of them expire
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		const n = 2000
		c, wire := w.Client(lab.Config())
		var locks []*leasehold.Lock
		for i := range n {
			locks = append(locks, w.Acquire(c, fmt.Sprintf("job/%d", i)))
		}
		var now, most atomic.Int64
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(5 * time.Millisecond)
			return r.Send()
		})
		lab.Elapse(time.Minute)
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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		a, b := w.Acquire(c, "a"), w.Acquire(c, "b")
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Renews() && bytes.Contains(r.Body, []byte(`"S":"a"`)) {
				return lab.Cut(r)
			}
			return r.Send()
		})
		lab.Elapse(time.Minute)
		if a.Err() == nil || b.Err() != nil {
			t.Errorf("a: %v, b: %v", a.Err(), b.Err())
		}
		wire.SetFault(nil)
		_ = a.Release(t.Context())
		w.Release(b)
	})
}

func TestAShorterLeaseEndsTrustBeforeItIsSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
		wire.SetFault(lab.Once(lab.Call.Renews, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			return lab.Cut(r)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := lock.Renew(ctx, leasehold.WithLease(10*time.Second)); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Fatalf("error %v", err)
		}
		if left := time.Until(lock.TrustedUntil()); left > 9*time.Second {
			t.Errorf("%v of trust left under a lease of 10s", left)
		}
		lab.Elapse(10 * time.Second)
		if lock.Err() == nil {
			t.Error("believed in past the shorter lease")
		}
		_ = lock.Release(t.Context())
	})
}

func TestEndsOfContexts(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
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
		w.Release(lock)
		for name, ctx := range map[string]context.Context{"Context": lock.Context(), "derived": derived, "Bind": bound} {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), leasehold.ErrReleased) {
				t.Errorf("%s: cause %v", name, context.Cause(ctx))
			}
		}
	})
}

func TestTrustEndsBeforeTheReleaseIsSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Releases() && lock.Err() == nil {
				t.Error("the release was sent while the lock was believed in")
			}
			return r.Send()
		})
		w.Release(lock)
	})
}

func TestDo(t *testing.T) {
	failed := errors.New("failed")
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		free := func(name string) {
			t.Helper()
			synctest.Wait()
			if lab.Text(w.Item("job"), "isReleased") != "1" {
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
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "isReleased": lab.Str("1")})
			<-ctx.Done()
			return failed
		})
		if !errors.Is(err, failed) || !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("lost: %v", err)
		}

		other, _ := w.Client(lab.Config())
		lock := w.Acquire(other, "job")
		ran := false
		err = c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { ran = true; return nil }, leasehold.NoWait())
		if ran || !errors.Is(err, leasehold.ErrNotRun) || !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("held: %v", err)
		}
		w.Release(lock)

		err = do(func(context.Context, *leasehold.Lock) error { wire.SetFault(lab.Cut); return nil })
		if err != nil {
			t.Errorf("a release that cannot reach DynamoDB: %v", err)
		}
		wire.SetFault(nil)
	})
}

func TestAnEndedContextInDoStopsTheFunctionNotTheLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
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
		if err != nil || lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("error %v, record %v", err, w.Item("job"))
		}
	})
}

func TestTrustIsBoundByALaterShorterLeaseThatMayLandYet(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
		n := 0
		var late func() (*http.Response, error)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if !r.Renews() {
				return r.Send()
			}
			n++
			switch n {
			case 1:
				_, _ = r.Send()
			case 50:
				late = r.Send
			}
			return nil, lab.ErrReset
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
		if got := lab.Text(w.Item("job"), "leaseDuration"); got != "2000" {
			t.Fatalf("lease %s", got)
		}
		if left > 2*time.Second {
			t.Errorf("trusted for %v under a lease of 2s", left)
		}
		_ = lock.Release(t.Context())
	})
}

func TestAShorterLeaseIsRenewedInItsOwnTime(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		lab.Elapse(6 * time.Second)
		if err := lock.Renew(t.Context(), leasehold.WithLease(2*time.Second)); err != nil {
			t.Fatal(err)
		}
		lab.Elapse(time.Minute)
		if err := lock.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		_ = lock.Release(t.Context())
	})
}

func TestAShorterLeaseThatMayHaveLandedIsRenewedInItsOwnTime(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		lab.Elapse(6 * time.Second)
		wire.SetFault(lab.Once(lab.Call.Renews, lab.LoseReply))
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		_ = lock.Renew(ctx, leasehold.WithLease(2*time.Second))
		lab.Elapse(time.Minute)
		if err := lock.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		_ = lock.Release(t.Context())
	})
}

func TestAnExpiryWarningComesAtOnceWhenAShorterLeaseFallsShort(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		var warned int
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour), leasehold.WithExpiryWarning(time.Minute, func(*leasehold.Lock) { warned++ }))
		if err := lock.Renew(t.Context(), leasehold.WithLease(30*time.Second)); err != nil {
			t.Fatal(err)
		}
		lab.Elapse(time.Second)
		if warned != 1 {
			t.Errorf("warned %d times", warned)
		}
		_ = lock.Release(t.Context())
	})
}

func TestALeaseMayBeForEver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		lock, err := c.Acquire(t.Context(), "job", leasehold.WithLease(math.MaxInt64))
		if err != nil {
			t.Fatalf("%v: %v", err, lab.Text(w.Item("job"), "leaseDuration"))
		}
		if lock.Err() != nil {
			t.Error(lock.Err())
		}
		w.Release(lock)
	})
}

func TestEventsOfAHeldLockCarryItsCallersValuesWithoutTheirEnd(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.OnEvent = func(ctx context.Context, e leasehold.Event) {
			if ctx.Err() != nil {
				t.Errorf("%s: the context has ended: %v", e.Kind, ctx.Err())
			}
		}
		c, _ := w.Client(cfg)
		lock := w.Acquire(c, "job")
		lab.Elapse(10 * time.Second)
		w.Release(lock)
	})
}

func TestARenewalComesThroughAfterAHundredWithoutAnAnswer(t *testing.T) {
	for name, landed := range map[string]int{"none has landed": 0, "the first has landed": 1, "the thirtieth has landed": 30} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				lock := w.Acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
				n := 0
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if !r.Renews() {
						return r.Send()
					}
					if n++; n == landed {
						_, _ = r.Send()
					}
					return nil, lab.ErrReset
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
				wire.SetFault(nil)
				if err := lock.Renew(t.Context()); err != nil {
					t.Errorf("answered: %v", err)
				}
				w.Release(lock)
			})
		})
	}
}

func TestALockThatAnotherHadMeanwhileIsReplacedNotBroken(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "grantId": lab.Str("x"), "isReleased": lab.Str("1")})
		var lost *leasehold.LostError
		if err := lock.Renew(t.Context()); !errors.As(err, &lost) || lost.Reason != leasehold.LostReplaced {
			t.Errorf("error %v", err)
		}
		_ = lock.Release(t.Context())
	})
}

func TestAThrottledRenewalIsRepeatedAtOnce(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		var sent []time.Time
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Renews() {
				if sent = append(sent, time.Now()); len(sent) == 1 {
					return lab.Refusal(400, "TransactionConflictException"), nil
				}
			}
			return r.Send()
		})
		lab.Elapse(6 * time.Second)
		if len(sent) < 2 || !sent[1].Equal(sent[0]) {
			t.Errorf("sent at %v", sent)
		}
		w.Release(lock)
	})
}

func TestARenewalThatHangsIsRepeatedWithinTwoSeconds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Cut))
		began := time.Now()
		if err := lock.Renew(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 2*time.Second || took > 2100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.Release(lock)
	})
}

// showNothing takes the old item out of a refusal, as an engine does that does
// not know ReturnValuesOnConditionCheckFailure.
func showNothing(r *lab.Request) (*http.Response, error) {
	res, err := r.Send()
	if err != nil || res.StatusCode != http.StatusBadRequest {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || !bytes.Contains(body, []byte("ConditionalCheckFailedException")) {
		res.Body = io.NopCloser(bytes.NewReader(body))
		return res, err
	}
	return lab.Refusal(400, "ConditionalCheckFailedException"), nil
}

func TestAnEngineThatShowsNoOldItemIsAsked(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		wire.SetFault(showNothing)
		lock := w.Acquire(a, "job", leasehold.WithoutRenewal())
		var held *leasehold.HeldError
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.As(err, &held) || held.Holder.Token != lock.Token() {
			t.Errorf("held: %v", err)
		}
		if sent := wire.Sent(); len(sent) != 2 || sent[1].Op != "GetItem" {
			t.Errorf("sent %v", sent)
		}
		w.Release(lock)

		lost := w.Acquire(b, "job", leasehold.WithoutRenewal())
		w.Delete("job")
		next := w.Acquire(a, "job")
		var gone *leasehold.LostError
		if err := lost.Renew(t.Context()); !errors.As(err, &gone) || gone.Reason != leasehold.LostReplaced || gone.By.Token != next.Token() {
			t.Errorf("lost: %v", err)
		}
		_ = lost.Release(t.Context())
		w.Release(next)

		if _, err := b.Acquire(t.Context(), "none", leasehold.IfExists()); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("none: %v", err)
		}
	})
}
