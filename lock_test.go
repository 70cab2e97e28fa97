package leasehold_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

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

func TestTrustThatHasEndedIsNotDatedInTheFuture(t *testing.T) {
	for name, end := range map[string]func(w *lab.World, c *leasehold.Client, lock *leasehold.Lock){
		"released": func(w *lab.World, _ *leasehold.Client, lock *leasehold.Lock) { w.Release(lock) },
		"detached": func(w *lab.World, _ *leasehold.Client, lock *leasehold.Lock) { w.Detach(lock) },
		"its client closed": func(w *lab.World, c *leasehold.Client, _ *leasehold.Lock) {
			if err := c.Close(w.T.Context()); err != nil {
				w.T.Error(err)
			}
		},
		"granted to another": func(w *lab.World, _ *leasehold.Client, lock *leasehold.Lock) {
			w.Steal("job")
			if err := lock.Commit(w.T.Context(), nil); !errors.Is(err, leasehold.ErrLost) {
				w.T.Error(err)
			}
		},
		"another handle is left": func(w *lab.World, c *leasehold.Client, lock *leasehold.Lock) {
			other, err := c.Acquire(lock.Context(), "job", leasehold.Reentrant())
			if err != nil {
				w.T.Fatal(err)
			}
			w.Release(lock)
			if left := time.Until(other.TrustedUntil()); left != 17*time.Second {
				w.T.Errorf("the other handle is trusted for %v", left)
			}
			w.Release(other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, _ := w.Client(lab.Config())
				lock := w.Acquire(c, "job")
				lab.Elapse(time.Second)
				end(w, c, lock)
				if left := time.Until(lock.TrustedUntil()); lock.Err() == nil || left > 0 {
					t.Errorf("%v, and trusted for %v", lock.Err(), left)
				}
			})
		})
	}
}
