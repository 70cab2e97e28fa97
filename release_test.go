package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAReleaseWhoseReplyIsLostIsRecognised(t *testing.T) {
	for name, policy := range map[string]leasehold.ReleasePolicy{"kept": leasehold.KeepOnRelease(), "deleted": leasehold.DeleteOnRelease()} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				lock := w.Acquire(c, "job")
				wire.SetFault(lab.Once(lab.Call.Releases, lab.LoseReply))
				if err := lock.Release(t.Context(), policy); err != nil {
					t.Errorf("error %v", err)
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Errorf("again: %v", err)
				}
			})
		})
	}
}

func TestAReleaseThatLandedUnseenIsNotTakenForALoss(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		var next *leasehold.Lock
		wire.SetFault(lab.Once(lab.Call.Releases, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			next = w.Acquire(b, "job") // in between somebody else is granted
			return nil, lab.ErrReset
		}))
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("error %v", err)
		}
		if next.Err() != nil {
			t.Errorf("the next holder: %v", next.Err())
		}
		w.Release(next)
	})
}

func TestAReleaseWithoutAnAnswerIsUnknownAndMayBeRepeated(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if err := lock.Release(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %v with an ended context", took)
		}
		wire.SetFault(nil)
		lab.Elapse(5 * time.Second)
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("repeated: %v", err)
		}
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("record %v", w.Item("job"))
		}
	})
}

func TestALockThatExpiredIsStillFreedByItsRelease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		lab.Elapse(time.Hour)
		wire.SetFault(nil)
		wire.Sent()
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("error %v", err)
		}
		if n := len(wire.Sent()); n != 1 || lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("%d requests, record %v", n, w.Item("job"))
		}
	})
}

func TestAStaleHandleTouchesNoLaterGrant(t *testing.T) { // dynamolock, awslabs: it stops the newer grant's heartbeats
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		stale := w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		lab.Elapse(30 * time.Second)
		wire.SetFault(nil)
		lock := w.Acquire(c, "job")
		if err := stale.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("stale release: %v", err)
		}
		if err := stale.Renew(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("stale renewal: %v", err)
		}
		lab.Elapse(2 * time.Minute)
		if err := lock.Err(); err != nil {
			t.Errorf("the later grant: %v", err)
		}
		w.Release(lock)
	})
}

func TestWhatTTLMayCollect(t *testing.T) {
	week, day := 7*24*time.Hour, 24*time.Hour
	for _, tc := range []struct {
		name      string
		retention time.Duration
		option    []leasehold.AcquireOption
		end       []leasehold.ReleaseOption
		want      time.Duration // 0: never
	}{
		{"a bare record", 0, nil, nil, week},
		{"one with data", 0, []leasehold.AcquireOption{leasehold.WithData([]byte("x"))}, nil, 0},
		{"one with attributes", 0, []leasehold.AcquireOption{leasehold.WithAttributes(map[string]types.AttributeValue{"a": lab.Str("x")})}, nil, 0},
		{"one whose attributes are removed", 0, []leasehold.AcquireOption{leasehold.WithAttributes(map[string]types.AttributeValue{"a": lab.Str("x")})},
			[]leasehold.ReleaseOption{leasehold.WithAttributes(map[string]types.AttributeValue{"a": nil})}, week},
		{"retention set", day, []leasehold.AcquireOption{leasehold.WithData([]byte("x"))}, nil, day},
		{"for ever", leasehold.Forever, nil, nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.Retention = tc.retention
				c, _ := w.Client(cfg)
				lock := w.Acquire(c, "job", tc.option...)
				if w.Item("job")["expiresAt"] != nil {
					t.Error("a held record may be collected")
				}
				w.Release(lock, tc.end...)
				var want types.AttributeValue
				if tc.want != 0 {
					want = lab.Num(fmt.Sprint(time.Now().Add(tc.want).Unix()))
				}
				if got := w.Item("job")["expiresAt"]; fmt.Sprint(deref(got)) != fmt.Sprint(deref(want)) {
					t.Errorf("expires %v, want %v", deref(got), deref(want))
				}
				lock = w.Acquire(c, "job")
				if w.Item("job")["expiresAt"] != nil {
					t.Error("a granted record may be collected")
				}
				w.Release(lock)
			})
		})
	}
}

func deref(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return "none"
}

func TestAReleaseHandsTheKeyToTheNextInLineInOneWrite(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		var mu sync.Mutex
		var order []int
		var tokens []int64
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				l := w.Acquire(c, "job")
				mu.Lock()
				order, tokens = append(order, i), append(tokens, l.Token())
				mu.Unlock()
				time.Sleep(time.Second)
				w.Release(l)
			})
			synctest.Wait()
		}
		wire.Sent()
		lab.Elapse(time.Minute) // nobody polls while the key is held here
		for _, c := range wire.Sent() {
			if !c.Renews() {
				t.Errorf("sent %s while the key was held", c.Op)
			}
		}
		w.Release(lock)
		wg.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("order %v", order)
		}
		if want := lock.Token() + 5; tokens[4] != want {
			t.Errorf("tokens %v, want the last %d", tokens, want)
		}
		sent := wire.Sent()
		if len(sent) != 6 { // five hand-overs and a release
			t.Errorf("%d requests", len(sent))
		}
	})
}

func TestOtherProcessesGetTheirTurn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		other, _ := w.Client(lab.Config())
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if l, err := c.Acquire(ctx, "job"); err == nil {
						time.Sleep(20 * time.Millisecond)
						w.Release(l)
					}
				}
			})
		}
		lab.Elapse(time.Second)
		for range 10 {
			began := time.Now()
			w.Release(w.Acquire(other, "job"))
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the other process waited %v", took)
			}
		}
		stop()
		wg.Wait()
	})
}

func TestANextInLineWhoLeftPassesTheKeyOn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { _, err := c.Acquire(ctx, "job"); left <- err }()
		synctest.Wait()
		granted := make(chan *leasehold.Lock)
		go func() { granted <- w.Acquire(c, "job") }()
		synctest.Wait()
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			leave() // while the hand-over to it is under way
			return lab.Slow(100 * time.Millisecond)(r)
		}))
		w.Release(lock)
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who left: %v", err)
		}
		last := <-granted
		if n := len(c.Held()); n != 1 {
			t.Errorf("%d locks held", n)
		}
		w.Release(last)
	})
}

func TestALostReplyOfAHandOverLosesNothing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		granted := make(chan *leasehold.Lock)
		go func() { granted <- w.Acquire(c, "job") }()
		synctest.Wait()
		wire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply))
		began := time.Now()
		w.Release(lock)
		next := <-granted
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		if next.Record().Version != lab.Text(w.Item("job"), "recordVersionNumber") {
			t.Error("the next holder does not hold what the record shows")
		}
		w.Release(next)
	})
}

func TestAReleaseThatCannotHandOverLetsTheNextSeekByItself(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		granted := make(chan *leasehold.Lock)
		go func() { granted <- w.Acquire(c, "job") }()
		synctest.Wait()
		wire.SetFault(lab.Cut)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := lock.Release(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("release: %v", err)
		}
		lab.Elapse(3 * time.Second)
		wire.SetFault(nil)
		began := time.Now()
		next := <-granted
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("the next waited %v for a grant that nobody believes in", took)
		}
		w.Release(next)
	})
}

func TestCloseEndsWaitersContextsAndLocks(t *testing.T) { // dynamolock: close waits behind a waiting acquire
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		other, _ := w.Client(lab.Config())
		foreign := w.Acquire(other, "foreign")
		lock := w.Acquire(c, "job")
		waiters := make(chan error, 2)
		for _, key := range []string{"foreign", "job"} {
			go func() { _, err := c.Acquire(t.Context(), key); waiters <- err }()
		}
		synctest.Wait()
		stopped := false
		running := make(chan error)
		go func() {
			running <- c.Do(t.Context(), "do", func(ctx context.Context, l *leasehold.Lock) error {
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), leasehold.ErrClosed) {
					t.Errorf("cause in Do: %v", context.Cause(ctx))
				}
				time.Sleep(time.Minute)
				stopped = true
				return nil
			})
		}()
		synctest.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if !stopped {
			t.Error("Close did not wait for the function in Do")
		}
		if err := <-running; err != nil {
			t.Errorf("Do: %v", err)
		}
		for range 2 {
			if err := <-waiters; !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("waiter: %v", err)
			}
		}
		if !errors.Is(lock.Err(), leasehold.ErrClosed) {
			t.Errorf("lock: %v", lock.Err())
		}
		for _, key := range []string{"job", "do"} {
			if lab.Text(w.Item(key), "isReleased") != "1" {
				t.Errorf("%s is not released", key)
			}
		}
		if _, err := c.Acquire(t.Context(), "more"); !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
		w.Release(foreign)
	})
}

func TestCloseReleasesTheOthersWhenOneReleaseFails(t *testing.T) { // dynamolock, older awslabs: stops at the first
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		for i := range 5 {
			w.Acquire(c, fmt.Sprintf("job/%d", i))
		}
		wire.SetFault(lab.Once(lab.Call.Releases, func(*lab.Request) (*http.Response, error) {
			return lab.Refusal(400, "AccessDeniedException"), nil
		}))
		var op *leasehold.OpError
		if err := c.Close(t.Context()); !errors.As(err, &op) {
			t.Errorf("close: %v", err)
		}
		released := 0
		for i := range 5 {
			if lab.Text(w.Item(fmt.Sprintf("job/%d", i)), "isReleased") == "1" {
				released++
			}
		}
		if released != 4 {
			t.Errorf("%d of 5 released", released)
		}
	})
}

func TestCloseLeavesToItsLeaseWhatDoesNotStop(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		stop := make(chan struct{})
		running := make(chan error)
		go func() {
			running <- c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { <-stop; return nil })
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		close(stop)
		if err := <-running; err != nil {
			t.Errorf("Do returned %v though the lock was ours until its lease ended", err)
		}
	})
}

func TestASecondCloseWaitsNoLongerThanItsContext(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { <-stop; return nil })
		})
		synctest.Wait()
		wg.Go(func() {
			if err := c.Close(t.Context()); err != nil {
				t.Errorf("first: %v", err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("second: %v", err)
		}
		close(stop)
		wg.Wait()
	})
}

func TestCloseAtTheInstantOfAGrantLeavesNoLockBehind(t *testing.T) {
	// Which comes first is the scheduler's choice, so there are many.
	for range 2 {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, wire := w.Client(lab.Config())
			wire.SetFault(lab.Slow(time.Second))
			const n = 200
			got := make(chan *leasehold.Lock, n)
			for i := range n {
				go func() { l, _ := c.Acquire(t.Context(), fmt.Sprintf("job/%d", i)); got <- l }()
			}
			time.Sleep(time.Second)
			_ = c.Close(t.Context())
			for range n {
				if l := <-got; l != nil && l.Err() == nil {
					t.Error("a lock is live after Close")
					_ = l.Release(t.Context())
				}
			}
			for i := range n {
				if item := w.Item(fmt.Sprintf("job/%d", i)); item != nil && lab.Text(item, "isReleased") != "1" {
					t.Errorf("left held: %v", item)
				}
			}
		})
	}
}

func TestAHandOverGivesUpWithTheLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		granted := make(chan *leasehold.Lock)
		go func() { granted <- w.Acquire(c, "job") }()
		synctest.Wait()
		var lost atomic.Bool
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() && !lost.Swap(true) {
				return nil, lab.ErrReset
			}
			return lab.Refusal(400, "ThrottlingException"), nil
		})
		time.AfterFunc(time.Hour, func() { wire.SetFault(nil) })
		began := time.Now()
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("took %v", took)
		}
		wire.SetFault(nil)
		w.Release(<-granted)
	})
}

func TestAReleaseThatMeetsAForeignGrantAfterALostRequestWorked(t *testing.T) {
	for _, next := range []string{"nobody waits here", "somebody waits here"} {
		t.Run(next, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, wire := w.Client(lab.Config())
				b, _ := w.Client(lab.Config())
				lock := w.Acquire(a, "job", leasehold.WithoutRenewal())
				var wg sync.WaitGroup
				if next == "somebody waits here" {
					wg.Go(func() { w.Release(w.Acquire(a, "job")) })
				}
				foreign := make(chan *leasehold.Lock)
				go func() { l := w.Acquire(b, "job"); wire.SetFault(nil); foreign <- l }()
				lab.Elapse(15 * time.Second)
				wire.SetFault(lab.Cut) // until the lease has run out and the other is granted
				if err := lock.Release(t.Context()); err != nil {
					t.Errorf("error %v", err)
				}
				w.Release(<-foreign)
				wg.Wait()
			})
		})
	}
}

func TestASecondReleaseNeverFreesTheNextHoldersGrant(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		granted := make(chan *leasehold.Lock, 1)
		go func() { granted <- w.Acquire(c, "job") }()
		synctest.Wait()
		var handOver func() (*http.Response, error)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			switch {
			case !r.Grants():
				return r.Send()
			case handOver == nil: // under way for long
				handOver = r.Send
				return lab.Cut(r)
			}
			// The next in line seeks the key by itself, and just behind its
			// refusal, by an engine that shows no record with one, comes the
			// hand-over after all.
			wire.SetFault(nil)
			_, _ = handOver()
			return lab.Refusal(400, "ConditionalCheckFailedException"), nil
		})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := lock.Release(ended); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Fatalf("first release: %v", err)
		}
		next := <-granted
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("second release: %v", err)
		}
		if lab.Text(w.Item("job"), "isReleased") == "1" {
			t.Errorf("the next holder's grant was released under it: %v", next.Err())
		}
		w.Release(next)
	})
}

func TestDataUnderAnUnsettledGrantIsNotLeftToTTL(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		w.Release(w.Acquire(c, "job", leasehold.WithData([]byte("precious"))))
		if w.Item("job")["expiresAt"] != nil {
			t.Fatal("setup")
		}
		wire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := c.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		lab.Elapse(5 * time.Second)
		item := w.Item("job")
		if lab.Text(item, "isReleased") != "1" || item["data"] == nil || item["expiresAt"] != nil {
			t.Errorf("record %v", item)
		}
	})
}

func TestDataThatMayHaveBeenStoredIsNotLeftToTTL(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		wire.SetFault(lab.Once(lab.Call.Renews, lab.LoseReply))
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		if err := lock.Renew(ctx, leasehold.WithData([]byte("precious"))); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Fatalf("error %v", err)
		}
		synctest.Wait()
		w.Release(lock)
		item := w.Item("job")
		if item["data"] == nil || item["expiresAt"] != nil {
			t.Errorf("record %v", item)
		}
	})
}

func TestDataOfANextInLineWhoLeftIsNotLeftToTTL(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { _, err := c.Acquire(ctx, "job", leasehold.WithData([]byte("precious"))); left <- err }()
		synctest.Wait()
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			leave()
			return lab.Slow(100 * time.Millisecond)(r)
		}))
		w.Release(lock)
		<-left
		item := w.Item("job")
		if item["data"] == nil || item["expiresAt"] != nil {
			t.Errorf("record %v", item)
		}
	})
}

func TestCloseDoesNotWaitForWhatHearsNothing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		r := lock.Record()
		g, err := lock.Detach()
		if err != nil {
			t.Fatal(err)
		}
		wire.SetFault(func(*lab.Request) (*http.Response, error) {
			return lab.Refusal(400, "ThrottlingException"), nil
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Resume(t.Context(), g); !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("resume: %v", err)
			}
		})
		wg.Go(func() {
			if err := c.Break(t.Context(), r); !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("break: %v", err)
			}
		})
		lab.Elapse(time.Minute)
		began := time.Now()
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("close took %v", took)
		}
		wg.Wait()
		if err := c.Break(t.Context(), r); !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("break after Close: %v", err)
		}
	})
}

func TestAReleaseGivesUpWithTheLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		began := time.Now()
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took < 18*time.Second || took > 25*time.Second {
			t.Errorf("took %v", took)
		}
		wire.SetFault(nil)
		if next, err := c.TryAcquire(t.Context(), "job"); err != nil {
			t.Errorf("a grant of its own that nobody believes in: %v", err)
		} else {
			w.Release(next)
		}
	})
}

func TestALockThatExpiredIsReleasedOnce(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.Config(), k.Edit)
		lock := w.Acquire(c, "job")
		k.Boot.Store(int64(time.Hour)) // nobody has looked since
		wire.SetFault(lab.Cut)
		wire.Sent()
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("error %v", err)
		}
		if n := len(wire.Sent()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestARefusalAfterALostReleaseIsAnUnknownOutcome(t *testing.T) {
	for _, waits := range []bool{false, true} {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, wire := w.Client(lab.Config())
			lock := w.Acquire(c, "job")
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var wg sync.WaitGroup
			if waits {
				wg.Go(func() {
					if l, err := c.Acquire(ctx, "job"); err == nil {
						_ = l.Release(t.Context())
					}
				})
				synctest.Wait()
			}
			lost := false
			wire.SetFault(func(r *lab.Request) (*http.Response, error) {
				if !lost {
					lost = true
					return lab.LoseReply(r)
				}
				return lab.Refusal(400, "AccessDeniedException"), nil
			})
			if err := lock.Release(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Errorf("somebody waits %v: %v", waits, err)
			}
			wg.Wait()
			lab.Elapse(10 * time.Second)
		})
	}
}

func TestAReleaseThatChangesTheRecordHandsNothingOver(t *testing.T) {
	for name, tc := range map[string]struct {
		opt  leasehold.ReleaseOption
		want string
	}{
		"data":    {leasehold.WithData([]byte("left")), "left"},
		"deleted": {leasehold.DeleteOnRelease(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				lock := w.Acquire(c, "job", leasehold.WithData([]byte("right")))
				granted := make(chan *leasehold.Lock)
				go func() { granted <- w.Acquire(c, "job") }()
				synctest.Wait()
				wire.Sent()
				w.Release(lock, tc.opt)
				next := <-granted
				if got := string(next.Data()); got != tc.want {
					t.Errorf("the next holder finds %q, want %q", got, tc.want)
				}
				if sent := wire.Sent(); len(sent) != 2 {
					t.Errorf("%d requests", len(sent))
				}
				w.Release(next)
			})
		})
	}
}

func TestAReleaseThatMeetsAForeignGrantAtOnceIsALoss(t *testing.T) {
	for name, happens := range map[string]func(w *lab.World){
		"replaced": func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "grantId": lab.Str("x")})
		},
		"broken": func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "isReleased": lab.Str("1")})
		},
		"deleted": func(w *lab.World) { w.Delete("job") },
		"damaged": func(w *lab.World) { w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": nil}) },
	} {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, somebody waits %v", name, waits), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, _ := w.Client(lab.Config())
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					err := c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error {
						if waits {
							go func() {
								if l, err := c.Acquire(ctx, "job"); err == nil {
									_ = l.Release(t.Context())
								}
							}()
							synctest.Wait()
						}
						happens(w)
						return nil
					})
					if !errors.Is(err, leasehold.ErrLost) {
						t.Errorf("error %v", err)
					}
					lab.Elapse(10 * time.Second)
				})
			})
		}
	}
}

func TestAHandOverDeliveredTwiceIsRecognised(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		granted := make(chan *leasehold.Lock)
		go func() { granted <- w.Acquire(c, "job") }()
		synctest.Wait()
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			return r.Send() // refused: it shows the first
		}))
		wire.Sent()
		w.Release(lock)
		next := <-granted
		if n := len(wire.Sent()); n != 1 || next.Err() != nil {
			t.Errorf("%d requests, %v", n, next.Err())
		}
		w.Release(next)
	})
}

func TestAHandOverThatIsRefusedGivesTheTurnOn(t *testing.T) {
	for name, leaves := range map[string]bool{"to the next": false, "past the next, who left": true} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				lock := w.Acquire(c, "job")
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				granted := make(chan *leasehold.Lock, 2)
				for _, ctx := range []context.Context{ctx, t.Context()} {
					go func() {
						if l, err := c.Acquire(ctx, "job"); err == nil {
							granted <- l
						}
					}()
					synctest.Wait()
				}
				wire.SetFault(lab.Once(lab.Call.Grants, func(*lab.Request) (*http.Response, error) {
					if leaves {
						leave()
						synctest.Wait()
					}
					return lab.Refusal(400, "AccessDeniedException"), nil
				}))
				began := time.Now()
				var op *leasehold.OpError
				if err := lock.Release(t.Context()); !errors.As(err, &op) || errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("error %v", err)
				}
				w.Release(<-granted)
				if !leaves {
					w.Release(<-granted)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestCloseWaitsForWhatIsBeingUndone(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Slow(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("left behind %v", w.Item("job"))
		}
	})
}
