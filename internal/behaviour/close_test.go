package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCloseReleasesAllLocksExceptLockOfRunningWork(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _ := w.Client(cfg)
		w.AcquireMany(c, "job", 3)
		stop := make(chan struct{})
		running := begin(func() error {
			return c.Do(t.Context(), "stuck", func(context.Context, *leasehold.Lock) error { <-stop; return nil })
		})
		synctest.Wait()
		ctx := w.Within(10 * time.Second)
		began := time.Now()
		closed := begin(func() error { return c.Close(ctx) })
		lab.Elapse(2 * time.Second)
		for i := range 3 {
			w.WantReleased(fmt.Sprint("job/", i))
		}
		err := <-closed
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "stuck") || took != 10*time.Second {
			t.Errorf("close: %v after %v", err, took)
		}
		lab.Want(t, "stuck is released while the function runs", w.IsReleased("stuck"), false)
		close(stop)
		lab.WantErr(t, "Do, whose lock was held until its lease expired", <-running, nil)
		lab.Elapse(time.Second)
	})
}

func TestCloseOfClientWithSharedLeaseSendsAtMostTwoRequests(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		w.AcquireMany(c, "job", 50)
		go func() {
			_ = c.Do(t.Context(), "do", func(ctx context.Context, _ *leasehold.Lock) error {
				<-ctx.Done()
				time.Sleep(100 * time.Millisecond)
				return nil
			})
		}()
		synctest.Wait()
		wire.Sent()
		closes(w, c)
		// At most two requests: one ends the session, and one releases the lock that Do held.
		lab.WantRange(t, "requests", len(wire.Sent()), 0, 2)
	})
}

func TestCloseCancelsAllWaitsAndReleasesAllLocks(t *testing.T) { // in dynamolock, Close blocks until every waiting Acquire has returned
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		foreign := holds(w, "foreign")
		lock := w.Acquire(c, "job")
		waiters := []<-chan error{
			begin(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "foreign")) }),
			begin(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job")) }),
			begin(func() error { return lab.ErrorOf(c.AcquireAll(t.Context(), leasehold.Keys("a", "foreign"))) }),
			begin(func() error { return lab.ErrorOf(c.AcquireAny(t.Context(), leasehold.Keys("foreign"))) }),
		}
		synctest.Wait()
		stopped := false
		running := begin(func() error {
			return c.Do(t.Context(), "do", func(ctx context.Context, l *leasehold.Lock) error {
				<-ctx.Done()
				lab.WantErr(t, "cause in Do", context.Cause(ctx), leasehold.ErrClosed)
				time.Sleep(time.Minute)
				stopped = true
				return nil
			})
		})
		synctest.Wait()
		closes(w, c)
		lab.Want(t, "function in Do ended before Close returned", stopped, true)
		lab.WantErr(t, "Do", <-running, nil)
		for i, ended := range waiters {
			lab.WantErr(t, fmt.Sprint("waiter ", i), <-ended, leasehold.ErrClosed)
		}
		lab.WantErr(t, "lock", lock.Err(), leasehold.ErrClosed)
		for _, key := range []string{"job", "do", "a"} {
			w.WantReleased(key)
		}
		lab.WantErr(t, "after Close", lab.ErrorOf(c.Acquire(t.Context(), "more")), leasehold.ErrClosed)
		closes(w, c) // closing a closed client succeeds
		w.Release(foreign)
	})
}

func TestCloseReleasesOtherLocksIfOneReleaseFails(t *testing.T) { // Close of dynamolock and of older awslabs clients stops at the first failed release
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		w.AcquireMany(c, "job", 5)
		wire.SetFault(lab.Once(lab.Call.Releases, lab.Refused("AccessDeniedException")))
		lab.WantAs[*leasehold.OpError](t, "close", c.Close(t.Context()))
		released := 0
		for i := range 5 {
			if lab.Text(w.Item(fmt.Sprintf("job/%d", i)), "isReleased") == "1" {
				released++
			}
		}
		lab.Want(t, "locks released", released, 4)
	})
}

func TestSecondCloseReturnsWhenItsContextEnds(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		stop := make(chan struct{})
		running := begin(func() error {
			return c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { <-stop; return nil })
		})
		synctest.Wait()
		first := begin(func() error { return c.Close(t.Context()) })
		synctest.Wait()
		lab.WantErr(t, "second", c.Close(w.Within(10*time.Second)), context.DeadlineExceeded)
		close(stop)
		lab.WantErr(t, "Do or the first Close", errors.Join(<-running, <-first), nil)
	})
}

func TestCloseDuringAcquireLeavesNoLockHeld(t *testing.T) {
	// For each key, the scheduler decides whether the grant or Close comes first. The test
	// acquires many keys, so that both orders occur.
	for range 2 {
		oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
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

func TestCloseCancelsThrottledCallsOfResumeAndBreak(t *testing.T) {
	oneLock(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		r := lock.Record()
		g := w.Detach(lock)
		wire.SetFault(lab.Refused("ThrottlingException"))
		resumed := begin(func() error { return lab.ErrorOf(c.Resume(t.Context(), g)) })
		broken := begin(func() error { return c.Break(t.Context(), r, leasehold.BreakOptions{}) })
		lab.Elapse(time.Minute)
		began := time.Now()
		closes(w, c)
		lab.WantTook(t, "close took", began, 0, 5*time.Second)
		for name, err := range map[string]error{
			"resume": <-resumed, "break": <-broken, "break after Close": c.Break(t.Context(), r, leasehold.BreakOptions{}),
		} {
			lab.WantErr(t, name, err, leasehold.ErrClosed)
		}
	})
}

func TestCloseWaitsForCleanupOfCancelledAcquire(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		wire.SetFault(lab.Slow(time.Second))
		lab.WantErr(t, "Acquire", lab.ErrorOf(c.Acquire(w.Within(100*time.Millisecond), "job")), context.DeadlineExceeded)
		closes(w, c)
		w.WantReleased("job")
	})
}

func TestReentrantAcquireFailsDuringClose(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		closed := make(chan error, 1)
		err := c.Do(t.Context(), "job", func(ctx context.Context, lock *leasehold.Lock) error {
			go func() { closed <- c.Close(context.Background()) }()
			synctest.Wait()
			values := context.WithoutCancel(ctx)
			for call, err := range map[string]error{
				"Acquire":    lab.ErrorOf(c.Acquire(values, "job", leasehold.Reentrant())),
				"AcquireAll": lab.ErrorOf(c.AcquireAll(values, leasehold.Keys("job"), leasehold.Reentrant())),
				"AcquireAny": lab.ErrorOf(c.AcquireAny(values, leasehold.Keys("job", "other"), leasehold.Reentrant())),
			} {
				lab.WantErr(t, call, err, leasehold.ErrClosed)
			}
			if held := c.Held(); len(held) != 1 || held[0] != lock {
				t.Errorf("held: %v", held)
			}
			return nil
		})
		lab.WantErr(t, "Do or Close", errors.Join(err, <-closed), nil)
		w.WantReleased("job")
	})
}
