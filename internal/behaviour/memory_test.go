package behaviour_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// heapOf returns the heap memory that fn adds, divided by n. The result does not include the stacks
// of goroutines.
func heapOf(n int, fn func()) int {
	inUse := func() int {
		synctest.Wait()
		return lab.Heap()
	}
	before := inUse()
	fn()
	return (inUse() - before) / n
}

func TestHeldLockUsesUnderThreeKilobytesOfMemory(t *testing.T) {
	lab.SkipUnderRace(t, "the race detector uses additional memory")
	const most = 3000
	// After an attempt, the runtime may keep the attempt's context and stopped timer in memory
	// until the timer would have fired. So the test waits this long before it measures the memory.
	// No renewal is due in this time.
	const attemptsAreOver = attempts.Limit + time.Second
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		n := lab.Crowd()
		// This client creates the records before the measurement, so that the engine's memory for
		// these records does not count.
		before, _ := w.Client(lab.Config())
		w.AcquireMany(before, "job", n)
		_ = before.Close(t.Context())
		least := math.MaxInt
		for range 5 { // garbage of other tests may add to a measurement, so the test takes the least of five
			c, wire := w.Client(cfg)
			w.Release(w.Acquire(c, "first"))
			var locks []*leasehold.Lock
			least = min(least, heapOf(n, func() {
				locks = w.AcquireMany(c, "job", n)
				time.Sleep(attemptsAreOver)
				wire.Sent()
			}))
			lab.WantErr(t, "Err", locks[0].Err(), nil)
			_ = c.Close(t.Context())
		}
		if least > most {
			t.Errorf("a held lock takes %d bytes, at most %d", least, most)
		}
		t.Logf("a held lock takes %d bytes", least)
	})
}

func TestWaiterUsesUnderTwoKilobytesOfHeap(t *testing.T) {
	lab.SkipUnderRace(t, "the race detector uses additional memory")
	const most = 2000
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		n := lab.Crowd()
		holder, _, held := w.Holding(lab.Config())
		c, wire := w.Client(lab.Config())
		granted := make(chan error)
		each := heapOf(n, func() {
			for range n {
				go func() {
					lock, err := c.Acquire(t.Context(), "job")
					if err == nil {
						err = lock.Release(t.Context())
					}
					granted <- err
				}()
			}
			synctest.Wait()
			wire.Sent()
		})
		if each > most {
			t.Errorf("a waiter takes %d bytes, at most %d", each, most)
		}
		t.Logf("a waiter takes %d bytes", each)
		w.Release(held)
		for range n {
			lab.WantErr(t, "a waiter", <-granted, nil)
		}
		_ = c.Close(t.Context())
		_ = holder.Close(t.Context())
	})
}

// goroutinesOf returns how many goroutines fn adds. It counts them when all goroutines of
// the bubble are blocked.
func goroutinesOf(fn func()) int {
	synctest.Wait()
	before := runtime.NumGoroutine()
	fn()
	synctest.Wait()
	return runtime.NumGoroutine() - before
}

// strays is the number of extra goroutines that a test accepts, because the runtime or an earlier
// test may start some during a count.
const strays = 5

// A goroutine for each held lock would cost a few more kilobytes of memory per lock.
func TestHeldLockNeedsNoGoroutine(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _ := w.Client(cfg)
		w.Acquire(c, "first")
		if n := goroutinesOf(func() {
			for _, l := range w.AcquireMany(c, "job", lab.Crowd()) {
				_ = l.Context() // creates the lock's context, which must not need a goroutine
			}
		}); n > strays {
			t.Errorf("%d goroutines for %d locks", n, lab.Crowd())
		}
		_ = c.Close(t.Context())
	})
}

func TestClientNeedsOneGoroutinePerAwaitedKey(t *testing.T) {
	const keys, behind = 50, 20
	oneClient(t, func(t *testing.T, w *lab.World, holder *leasehold.Client, _ *lab.Wire) {
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
			t.Errorf("%d goroutines for %d keys, without the goroutines of the callers", own, keys)
		}
		cancel()
		_ = c.Close(t.Context())
		_ = holder.Close(t.Context())
	})
}

func TestReleasedLockIsGarbageCollected(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _ := w.Client(cfg)
		gone := releasedLock(w, c)
		_ = releasedLock(w, c) // the client may still refer to the last released lock, so the test releases another lock
		synctest.Wait()        // let the goroutines of the releases end: they refer to the locks
		runtime.GC()
		lab.Want(t, "released lock that is still in memory", gone.Value(), nil)
		closes(w, c)
	})
}

//go:noinline
func releasedLock(w *lab.World, c *leasehold.Client) weak.Pointer[leasehold.Lock] {
	lock := w.Acquire(c, "job")
	w.Release(lock)
	return weak.Make(lock)
}
