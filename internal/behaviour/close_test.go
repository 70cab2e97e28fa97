package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCloseReleasesOtherLocksWhileFunctionRuns(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared lease %v", shared), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.SharedLease = shared
				c, _ := w.Client(cfg)
				for i := range 3 {
					w.Acquire(c, fmt.Sprint("job/", i))
				}
				stop := make(chan struct{})
				go func() {
					_ = c.Do(t.Context(), "stuck", func(context.Context, *leasehold.Lock) error { <-stop; return nil })
				}()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				closed := make(chan error, 1)
				go func() { closed <- c.Close(ctx) }()
				lab.Elapse(2 * time.Second)
				for i := range 3 {
					if key := fmt.Sprint("job/", i); !w.IsReleased(key) {
						t.Errorf("%s waits for the function", key)
					}
				}
				if err := <-closed; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "stuck") {
					t.Errorf("close: %v", err)
				}
				close(stop)
				lab.Elapse(time.Second)
			})
		})
	}
}

func TestCloseUnderSharedLeaseNeedsTwoRequestsIfFunctionRuns(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.SharedLease = true
		c, wire := w.Client(cfg)
		for i := range 50 {
			w.Acquire(c, fmt.Sprint("job/", i))
		}
		go func() {
			_ = c.Do(t.Context(), "do", func(ctx context.Context, _ *leasehold.Lock) error {
				<-ctx.Done()
				time.Sleep(100 * time.Millisecond)
				return nil
			})
		}()
		synctest.Wait()
		wire.Sent()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(wire.Sent()); n > 2 { // up to two requests: one for the function's lock and one for the session
			t.Errorf("%d requests", n)
		}
	})
}

func TestCloseEndsWaitsLocksAndContexts(t *testing.T) { // in dynamolock, Close waits for a waiting Acquire to return
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		other, _ := w.Client(lab.Config())
		foreign := w.Acquire(other, "foreign")
		lock := w.Acquire(c, "job")
		waits := []func() error{
			func() error { return lab.ErrorOf(c.Acquire(t.Context(), "foreign")) },
			func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job")) },
			func() error { return lab.ErrorOf(c.AcquireAll(t.Context(), leasehold.Keys("a", "foreign"))) },
			func() error { return lab.ErrorOf(c.AcquireAny(t.Context(), leasehold.Keys("foreign"))) },
		}
		waiters := make(chan error, len(waits))
		for _, wait := range waits {
			go func() { waiters <- wait() }()
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
		for range waits {
			if err := <-waiters; !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("waiter: %v", err)
			}
		}
		if !errors.Is(lock.Err(), leasehold.ErrClosed) {
			t.Errorf("lock: %v", lock.Err())
		}
		for _, key := range []string{"job", "do", "a"} {
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

func TestCloseReleasesRemainingLocksIfOneReleaseFails(t *testing.T) { // dynamolock and older awslabs clients stop at the first failure
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

func TestCloseDoesNotReleaseLockOfRunningFunction(t *testing.T) {
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

func TestSecondCloseReturnsWhenItsContextEnds(t *testing.T) {
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

func TestCloseDuringGrantDoesNotLeaveLockHeld(t *testing.T) {
	// For each key, the scheduler decides whether the grant or Close comes first. So the
	// test makes many attempts, to see both orders.
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

func TestCloseDoesNotWaitForUnansweredRequests(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		r := lock.Record()
		g := w.Detach(lock)
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
			if err := c.Break(t.Context(), r, leasehold.BreakOptions{}); !errors.Is(err, leasehold.ErrClosed) {
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
		if err := c.Break(t.Context(), r, leasehold.BreakOptions{}); !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("break after Close: %v", err)
		}
	})
}

func TestCloseWaitsForCleanupOfCancelledAcquire(t *testing.T) {
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

func TestReentrantAcquireDuringCloseReturnsErrClosed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		closed := make(chan error, 1)
		err := c.Do(t.Context(), "job", func(ctx context.Context, lock *leasehold.Lock) error {
			go func() { closed <- c.Close(context.Background()) }()
			synctest.Wait()
			values := context.WithoutCancel(ctx)
			_, one := c.Acquire(values, "job", leasehold.Reentrant())
			_, all := c.AcquireAll(values, leasehold.Keys("job"), leasehold.Reentrant())
			_, anyOf := c.AcquireAny(values, leasehold.Keys("job", "other"), leasehold.Reentrant())
			for call, err := range map[string]error{"Acquire": one, "AcquireAll": all, "AcquireAny": anyOf} {
				if !errors.Is(err, leasehold.ErrClosed) {
					t.Errorf("%s: %v", call, err)
				}
			}
			if held := c.Held(); len(held) != 1 || held[0] != lock {
				t.Errorf("held: %v", held)
			}
			return nil
		})
		if err := errors.Join(err, <-closed); err != nil {
			t.Error(err)
		}
		if !w.IsReleased("job") {
			t.Error("the key is not free")
		}
	})
}
