package behaviour_test

import (
	"context"
	"fmt"
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
	for name, acquire := range map[string]func(context.Context, *leasehold.Client) error{
		"Acquire": func(ctx context.Context, c *leasehold.Client) error { _, err := c.Acquire(ctx, "job"); return err },
		"AcquireAll": func(ctx context.Context, c *leasehold.Client) error {
			_, err := c.AcquireAll(ctx, leasehold.Keys("job", "other"))
			return err
		},
		"AcquireAny": func(ctx context.Context, c *leasehold.Client) error {
			_, err := c.AcquireAny(ctx, leasehold.Keys("job", "other"))
			return err
		},
	} {
		for _, kind := range []leasehold.EventKind{leasehold.EventGranted, leasehold.EventWaiting} {
			if kind == leasehold.EventWaiting && name != "Acquire" {
				continue // here OnEvent is called on another goroutine, where a panic would end the process
			}
			t.Run(fmt.Sprint(name, ", ", kind), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					var on atomic.Value
					on.Store(leasehold.EventKind(""))
					cfg := lab.Config()
					cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
						if e.Kind == on.Load() {
							panic("on event")
						}
					}
					c, _ := w.Client(cfg)
					var held *leasehold.Lock
					if kind == leasehold.EventWaiting {
						held = w.Acquire(c, "job")
					}
					on.Store(kind)
					if p := panicOf(func() { _ = acquire(t.Context(), c) }); p != "on event" {
						t.Errorf("panic %v", p)
					}
					on.Store(leasehold.EventKind(""))
					if held != nil {
						w.Release(held)
					}
					lab.Elapse(time.Second)
					if n := len(c.Held()); n != 0 {
						t.Errorf("%d locks held that nobody has", n)
					}
					lock, err := c.TryAcquire(t.Context(), "job")
					if err != nil {
						t.Fatal(err)
					}
					w.Release(lock)
					if err := c.Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

func TestPanicInDoDoesNotWaitForHangingNetwork(t *testing.T) {
	for name, do := range map[string]func(context.Context, *leasehold.Client, func()) error{
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
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				var panicked time.Time
				p := panicOf(func() {
					_ = do(t.Context(), c, func() {
						wire.SetFault(lab.Cut)
						panicked = time.Now()
						panic("work")
					})
				})
				if took := time.Since(panicked); p != "work" || took > 2*time.Second { // the release delays the panic for Config.ReleaseGrace at most
					t.Errorf("panic %v after %v", p, took)
				}
				lab.Elapse(5 * time.Second)
			})
		})
	}
}

func TestPanicInDoReleasesLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		p := panicOf(func() {
			_ = c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { panic("work") })
		})
		if p != "work" || !w.IsReleased("job") {
			t.Errorf("panic %v, record %v", p, w.Item("job"))
		}
	})
}
