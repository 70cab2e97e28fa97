package behaviour_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestReleasedLockIsGarbageCollected(t *testing.T) {
	for name, cfg := range map[string]leasehold.Config{"a lease each": lab.Config(), "a shared lease": lab.SharedConfig()} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, _ := w.Client(cfg)
				gone := releasedLock(w, c)
				_ = releasedLock(w, c) // a second lock is released, because the last released lock may still be referenced
				synctest.Wait()        // goroutines of the releases refer to their locks until they end
				runtime.GC()
				if gone.Value() != nil {
					t.Error("the client keeps it")
				}
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

//go:noinline
func releasedLock(w *lab.World, c *leasehold.Client) weak.Pointer[leasehold.Lock] {
	lock := w.Acquire(c, "job")
	w.Release(lock)
	return weak.Make(lock)
}
