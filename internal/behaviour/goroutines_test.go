package behaviour_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// goroutinesOf returns how many more goroutines there are after fn than before it. It
// counts them once all goroutines block.
func goroutinesOf(fn func()) int {
	synctest.Wait()
	before := runtime.NumGoroutine()
	fn()
	synctest.Wait()
	return runtime.NumGoroutine() - before
}

// strays is the number of goroutines that the runtime, or an earlier test, may start during
// the measurement. If each of hundreds of locks had one goroutine, the count would exceed
// strays.
const strays = 5

// Goroutines cost memory: a few kilobytes each, for as long as a lock is held.
func TestHeldLockNeedsNoGoroutine(t *testing.T) {
	for kind, cfg := range map[string]leasehold.Config{"own lease": lab.Config(), "shared lease": lab.SharedConfig()} {
		t.Run(kind, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, _ := w.Client(cfg)
				w.Acquire(c, "first")
				if n := goroutinesOf(func() {
					for _, l := range w.AcquireMany(c, "job", lab.Crowd()) {
						_ = l.Context() // this context ends with the lock, and must not need a goroutine for that
					}
				}); n > strays {
					t.Errorf("%d goroutines for %d locks", n, lab.Crowd())
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestAwaitedKeyNeedsOneGoroutineForAllWaiters(t *testing.T) {
	const keys, behind = 50, 20
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.Config())
		w.AcquireMany(holder, "job", keys)
		c, _ := w.Client(lab.Config())
		ctx, cancel := context.WithCancel(t.Context())
		n := goroutinesOf(func() {
			for i := range keys {
				for range 1 + behind {
					go func() { _, _ = c.Acquire(ctx, fmt.Sprint("job/", i)) }()
				}
			}
			lab.Elapse(3 * time.Second)
		})
		if own := n - keys*(1+behind); own > keys+strays {
			t.Errorf("%d goroutines for %d keys, beside those of the callers", own, keys)
		}
		cancel()
		_ = c.Close(t.Context())
		_ = holder.Close(t.Context())
	})
}
