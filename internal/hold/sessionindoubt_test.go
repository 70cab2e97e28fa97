package hold_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// leavesGrantUnanswered returns a client and its simulated network. The client holds the
// lock "other" under its session. It has also sent a grant of "job", whose caller gave up
// before the reply.
func leavesGrantUnanswered(w *lab.World, cfg leasehold.Config, fault lab.Fault) (*leasehold.Client, *lab.Wire) {
	w.T.Helper()
	c, wire := w.Client(cfg)
	w.Acquire(c, "other")
	wire.SetFault(lab.Once(lab.Call.Grants, fault))
	if _, err := c.Acquire(w.Within(time.Second), "job"); err == nil {
		w.T.Fatal("granted without a reply")
	}
	return c, wire
}

func TestLateUnansweredGrantUnderSessionIsUndone(t *testing.T) {
	lab.Each(t, map[string]time.Duration{
		"soon": 8 * time.Second, "in minutes": 10 * time.Minute,
	}, func(t *testing.T, w *lab.World, late time.Duration) {
		c, wire := w.Client(lab.SharedConfig())
		w.Acquire(c, "other")
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Delayed(late)))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		lab.WantFailed(t, "acquire without a reply", lab.ErrorOf(c.Acquire(ctx, "job")))
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
		lab.WantErr(t, "lock", lock.Err(), nil)
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
}

func TestKeyWithManyUnansweredGrantsIsCheckedOnce(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		w.Acquire(c, "other")
		wire.SetFault(lab.On(lab.Call.Grants, lab.Cut))
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			lab.WantFailed(t, "acquire without a network", lab.ErrorOf(c.Acquire(ctx, "job")))
			cancel()
			lab.Elapse(4 * time.Second) // let the unanswered requests end
		}
		wire.SetFault(nil)
		wire.Sent()
		lab.Elapse(time.Minute)
		if looks := lab.Count(wire.Sent(), lab.Call.Reads); looks == 0 || looks > 5 {
			t.Errorf("%d looks in a minute", looks)
		}
		_ = c.Close(t.Context())
	})
}

func TestUnansweredGrantUnderSessionIsUndone(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := leavesGrantUnanswered(w, lab.SharedConfig(), lab.Slow(time.Hour))
		lab.Elapse(5 * time.Second)
		plain, _ := w.Client(lab.Config())
		lock := lab.Must(plain.TryAcquire(t.Context(), "job"))(t)
		w.Release(lock)
		_ = c.Close(t.Context())
	})
}

func TestLateGrantUnderSessionIsReleasedOrDeletedAsConfigured(t *testing.T) {
	lab.Each(t, map[string]bool{"released": false, "deleted": true}, func(t *testing.T, w *lab.World, deletes bool) {
		cfg := lab.SharedConfig()
		cfg.DeleteOnRelease = deletes
		var late func() (*http.Response, error)
		c, _ := leavesGrantUnanswered(w, cfg, func(r *lab.Request) (*http.Response, error) {
			late = r.Send
			return lab.Cut(r)
		})
		// The client tries at once to undo the grant, and finds nothing to undo yet.
		lab.Elapse(time.Minute)
		_, _ = late()
		if w.Item("job") == nil || w.IsReleased("job") {
			t.Fatal("it did not land: this test tests nothing")
		}
		lab.Elapse(2 * time.Minute)
		if gone := w.Item("job") == nil; gone != deletes || !gone && !w.IsReleased("job") {
			t.Errorf("left %v", w.Item("job"))
		}
		_ = c.Close(t.Context())
	})
}
