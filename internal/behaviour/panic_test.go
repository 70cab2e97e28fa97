package behaviour_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// panicOf returns the value that a function panics with, or nil.
func panicOf(fn func()) (value any) {
	defer func() { value = recover() }()
	fn()
	return nil
}

func TestPanicInOnEventReleasesLock(t *testing.T) {
	type row struct {
		kind    leasehold.EventKind
		acquire func(context.Context, *leasehold.Client) error
	}
	acquire := func(ctx context.Context, c *leasehold.Client) error { return lab.ErrorOf(c.Acquire(ctx, "job")) }
	// No case waits for several keys: such a wait calls OnEvent on another goroutine, where
	// a panic would end the process.
	lab.Each(t, map[string]row{
		"Acquire":            {leasehold.EventGranted, acquire},
		"Acquire that waits": {leasehold.EventWaiting, acquire},
		"AcquireAll": {leasehold.EventGranted, func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("job", "other")))
		}},
		"AcquireAny": {leasehold.EventGranted, func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("job", "other")))
		}},
	}, func(t *testing.T, w *lab.World, tc row) {
		var panics atomic.Bool
		cfg := lab.Config()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == tc.kind && panics.Load() {
				panic("on event")
			}
		}
		c, _ := w.Client(cfg)
		var held *leasehold.Lock
		if tc.kind == leasehold.EventWaiting {
			held = w.Acquire(c, "job")
		}
		panics.Store(true)
		lab.Want(t, "panic", panicOf(func() { _ = tc.acquire(t.Context(), c) }), "on event")
		panics.Store(false)
		if held != nil {
			w.Release(held)
		}
		lab.Elapse(time.Second)
		lab.Want(t, "locks held", len(c.Held()), 0)
		w.Release(w.Acquire(c, "job", leasehold.NoWait()))
		closes(w, c)
	})
}

func TestPanicInDoDoesNotWaitForHangingNetwork(t *testing.T) {
	lab.Each(t, map[string]func(context.Context, *leasehold.Client, func()) error{
		"a lock": func(ctx context.Context, c *leasehold.Client, work func()) error {
			return c.Do(ctx, "job", func(context.Context, *leasehold.Lock) error { work(); return nil })
		},
		"a group": func(ctx context.Context, c *leasehold.Client, work func()) error {
			g, err := c.AcquireAll(ctx, leasehold.Keys("job", "other"))
			if err != nil {
				return err
			}
			return g.Do(ctx, func(context.Context, *leasehold.Group) error { work(); return nil })
		},
	}, func(t *testing.T, w *lab.World, do func(context.Context, *leasehold.Client, func()) error) {
		c, wire := w.Client(lab.Config())
		var panicked time.Time
		p := panicOf(func() {
			_ = do(t.Context(), c, func() {
				wire.SetFault(lab.Cut)
				panicked = time.Now()
				panic("work")
			})
		})
		// The panic continues once the release is answered, or after Config.ReleaseGrace.
		if took := time.Since(panicked); p != "work" || took > 2*time.Second {
			t.Errorf("panic %v after %v", p, took)
		}
		lab.Elapse(5 * time.Second)
	})
}

func TestPanicInDoReleasesLock(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		p := panicOf(func() {
			_ = c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { panic("work") })
		})
		lab.Want(t, "panic", p, "work")
		w.WantReleased("job")
	})
}
