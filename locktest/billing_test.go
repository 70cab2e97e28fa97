package locktest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/locktest"
)

// closeMonth is the code under test: a monthly job. Several processes may call it at the same
// time, but only one of them runs step at a time.
func closeMonth(ctx context.Context, locks *leasehold.Client, month string, step func(context.Context) error) error {
	return locks.Do(ctx, "close/"+month, func(ctx context.Context, _ *leasehold.Lock) error { return step(ctx) })
}

func TestMonthlyJobRunsInOneProcessAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := locktest.New(t)
		var now, most int // "now" counts the running calls of step, and "most" is the highest value of "now"
		var mu sync.Mutex
		step := func(context.Context) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Minute)
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		}
		var wg sync.WaitGroup
		for range 3 {
			locks := env.Client(leasehold.Config{})
			wg.Go(func() {
				lab.OK(t, closeMonth(t.Context(), locks, "2026-11", step))
			})
		}
		wg.Wait()
		lab.Want(t, "months closed at the same time", most, 1)
	})
}

func TestMonthlyJobStopsWaitingWhenContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := locktest.New(t)
		locks := env.Client(leasehold.Config{})
		env.Hold("close/2026-11")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := closeMonth(ctx, locks, "2026-11", func(context.Context) error {
			t.Error("the step ran")
			return nil
		})
		if !errors.Is(err, leasehold.ErrHeld) || !errors.Is(err, leasehold.ErrNotRun) || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestMonthlyJobStopsWhenItsLockIsStolen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := locktest.New(t)
		locks := env.Client(leasehold.Config{})
		err := closeMonth(t.Context(), locks, "2026-11", func(ctx context.Context) error {
			env.Steal("close/2026-11")
			<-ctx.Done() // this line blocks the test forever if the step's context does not end
			return context.Cause(ctx)
		})
		if !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("close: %v", err)
		}
	})
}

func TestMonthlyJobTakesOverLockOfDeadProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := locktest.New(t)
		first, second := env.Client(leasehold.Config{}), env.Client(leasehold.Config{})
		began, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			_ = closeMonth(t.Context(), first, "2026-11", func(ctx context.Context) error {
				close(began)
				<-ctx.Done()
				close(stopped)
				return context.Cause(ctx)
			})
		}()
		<-began
		env.Disconnect(first)
		err := closeMonth(t.Context(), second, "2026-11", func(context.Context) error {
			select {
			case <-stopped:
			default:
				t.Error("the first process has not stopped")
			}
			return nil
		})
		if err != nil {
			t.Errorf("close: %v", err)
		}
	})
}
