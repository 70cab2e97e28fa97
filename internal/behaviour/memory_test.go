package behaviour_test

import (
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// heapOf returns how much heap memory fn adds, divided by n. It does not count the stacks
// of goroutines.
func heapOf(n int, fn func()) int {
	inUse := func() int {
		synctest.Wait()
		runtime.GC()
		runtime.GC() // the second run frees memory that the first one has finalized
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := inUse()
	fn()
	return (inUse() - before) / n
}

func TestHeldLockTakesUnderThreeKilobytes(t *testing.T) {
	if lab.Race {
		t.Skip("the race detector has memory of its own for each word")
	}
	const most = 3000
	// The runtime may keep stopped timers until they would have fired; these may be up to a
	// quarter of all timers. Each stopped timer keeps the context of its attempt in memory.
	// So the test measures after this time. No renewal is due before then.
	const attemptsAreOver = attempts.Limit + time.Second
	for kind, cfg := range map[string]leasehold.Config{"own lease": lab.Config(), "shared lease": lab.SharedConfig()} {
		t.Run(kind, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				n := lab.Crowd()
				before, _ := w.Client(lab.Config()) // this client creates the records before the measurement, because the engine's memory for them must not count
				w.AcquireMany(before, "job", n)
				_ = before.Close(t.Context())
				least := math.MaxInt
				for range 5 { // the test takes the least of five measurements, because garbage of other tests adds to some
					c, wire := w.Client(cfg)
					w.Release(w.Acquire(c, "first"))
					var locks []*leasehold.Lock
					least = min(least, heapOf(n, func() {
						locks = w.AcquireMany(c, "job", n)
						time.Sleep(attemptsAreOver)
						wire.Sent()
					}))
					if err := locks[0].Err(); err != nil {
						t.Error(err)
					}
					_ = c.Close(t.Context())
				}
				if least > most {
					t.Errorf("a held lock takes %d bytes, at most %d", least, most)
				}
				t.Logf("a held lock takes %d bytes", least)
			})
		})
	}
}

func TestWaiterTakesUnderTwoKilobytesBesideItsGoroutine(t *testing.T) {
	if lab.Race {
		t.Skip("the race detector has memory of its own for each word")
	}
	const most = 2000
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		n := lab.Crowd()
		holder, _ := w.Client(lab.Config())
		held := w.Acquire(holder, "job")
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
			if err := <-granted; err != nil {
				t.Error(err)
			}
		}
		_ = c.Close(t.Context())
		_ = holder.Close(t.Context())
	})
}
