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

// heapOf returns how much heap fn adds, divided by n. Stacks of goroutines do not count.
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
	// The runtime may keep stopped timers until they would have fired, up to a quarter of
	// all timers. Each stopped timer keeps the context of its attempt in memory. No renewal
	// is due before this time has passed.
	const attemptsAreOver = attempts.Limit + time.Second
	for kind, cfg := range map[string]leasehold.Config{"own lease": lab.Config(), "shared lease": lab.SharedConfig()} {
		t.Run(kind, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				n := lab.Crowd()
				before, _ := w.Client(lab.Config()) // the engine stores the records, which must not count
				w.AcquireMany(before, "job", n)
				_ = before.Close(t.Context())
				least := math.MaxInt
				for range 5 { // garbage of other tests adds to some of the measurements
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
