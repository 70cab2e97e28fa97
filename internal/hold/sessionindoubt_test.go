package hold_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestLateUnansweredGrantUnderSessionIsUndone(t *testing.T) {
	for name, late := range map[string]time.Duration{"soon": 8 * time.Second, "in minutes": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.SharedConfig())
				w.Acquire(c, "other")
				wire.SetFault(lab.Once(lab.Call.Grants, lab.Delayed(late)))
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				if _, err := c.Acquire(ctx, "job"); err == nil {
					t.Fatal("granted without a reply")
				}
				lab.Elapse(late)
				if item := w.Item("job"); item == nil || lab.Text(item, "isReleased") != "" {
					t.Fatalf("nothing has landed: %v", item)
				}
				waiter, _ := w.Client(lab.Config())
				began := time.Now()
				ctx, cancel = context.WithTimeout(t.Context(), 3*time.Hour)
				defer cancel()
				lock, err := waiter.Acquire(ctx, "job")
				if took := time.Since(began); err != nil || took > 2*time.Minute+5*time.Second {
					t.Fatalf("granted after %v: %v", took, err)
				}
				lab.Elapse(time.Hour)
				if err := lock.Err(); err != nil {
					t.Error(err)
				}
				w.Release(lock)
				wire.Sent()
				lab.Elapse(time.Minute)
				for _, sent := range wire.Sent() {
					if !sent.RenewsSession() && !sent.Renews() {
						t.Errorf("still looked for an hour later: %s", sent.Op)
					}
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestKeyWithManyUnansweredGrantsIsCheckedOnce(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		w.Acquire(c, "other")
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() {
				return lab.Cut(r)
			}
			return r.Send()
		})
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if _, err := c.Acquire(ctx, "job"); err == nil {
				t.Fatal("granted without a network")
			}
			cancel()
			lab.Elapse(4 * time.Second) // long enough for requests that hang to be given up
		}
		wire.SetFault(nil)
		wire.Sent()
		lab.Elapse(time.Minute)
		looks := 0
		for _, sent := range wire.Sent() {
			if sent.Op == "GetItem" {
				looks++
			}
		}
		if looks == 0 || looks > 5 {
			t.Errorf("%d looks in a minute", looks)
		}
		_ = c.Close(t.Context())
	})
}

func TestUnansweredGrantUnderSessionIsUndone(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		w.Acquire(c, "other")
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(time.Hour)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "job"); err == nil {
			t.Fatal("granted without a reply")
		}
		lab.Elapse(5 * time.Second)
		plain, _ := w.Client(lab.Config())
		lock, err := plain.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatalf("the attempt blocks others: %v", err)
		}
		w.Release(lock)
		_ = c.Close(t.Context())
	})
}

func TestLateGrantUnderSessionIsReleasedOrDeletedAsConfigured(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			cfg := lab.SharedConfig()
			cfg.DeleteOnRelease = deletes
			c, wire := w.Client(cfg)
			w.Acquire(c, "other")
			var late func() (*http.Response, error)
			wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
				late = r.Send
				return lab.Cut(r)
			}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := c.Acquire(ctx, "job"); err == nil {
				t.Fatal("granted without a reply")
			}
			lab.Elapse(time.Minute) // long enough for the immediate undo, which finds nothing
			_, _ = late()
			if w.Item("job") == nil || w.IsReleased("job") {
				t.Fatal("it did not land: this test tests nothing")
			}
			lab.Elapse(2 * time.Minute)
			if gone := w.Item("job") == nil; gone != deletes || !gone && !w.IsReleased("job") {
				t.Errorf("of a client that deletes: %v, left %v", deletes, w.Item("job"))
			}
			_ = c.Close(t.Context())
		})
	}
}
