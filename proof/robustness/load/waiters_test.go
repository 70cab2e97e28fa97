package load

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func nop(*leasehold.Lock) {}

// polls starts n goroutines of one client that wait for a held key. It returns the number
// of requests that the client sends in a minute, and the memory of each waiter. At the end,
// every goroutine acquires the key once.
func polls(t *testing.T, config func() leasehold.Config, n int) (requests int, memory uint64) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.Config())
		theirs := w.Acquire(holder, "job")
		c, wire := w.Client(config())
		w.Release(w.Acquire(c, "mine")) // acquire a lock before the measurement, because the first acquisition allocates more memory than later ones
		before := inUse()
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				lock, err := c.Acquire(t.Context(), "job")
				if err != nil {
					t.Error(err)
					return
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		lab.Elapse(10 * time.Second) // wait until the pauses between polls have reached their maximum
		memory = (inUse() - before) / uint64(n)
		wire.Sent()
		lab.Elapse(time.Minute)
		requests = len(wire.Sent())
		w.Release(theirs)
		began := time.Now()
		wg.Wait()
		if took := time.Since(began); took > time.Duration(n)*100*time.Millisecond+10*time.Second {
			t.Errorf("%d waiters had their turn in %v", n, took)
		}
		for _, c := range []*leasehold.Client{c, holder} {
			lab.OK(t, c.Close(t.Context()))
		}
	})
	return requests, memory
}

// inUse returns the memory that the heap and all stacks use.
func inUse() uint64 {
	runtime.GC()
	runtime.GC() // the first collection runs finalizers; the second frees the finalized objects
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func TestThousandWaitersOfOneClientSharePolling(t *testing.T) {
	n := count(t, "LEASEHOLD_WAITERS", 1000, 4)
	const most = 16 << 10 // maximum bytes per waiter, including its goroutine's stack and its context
	for kind, config := range configs {
		t.Run(kind, func(t *testing.T) {
			one, _ := polls(t, config, 1)
			all, each := polls(t, config, n)
			if all > one+one/2 || all < one/2 {
				t.Errorf("%d waiters sent %d requests in a minute, one sends %d", n, all, one)
			}
			if each > most && !lab.Race {
				t.Errorf("a waiter takes %d bytes, at most %d", each, most)
			}
			t.Logf("%d waiters sent %d requests in a minute, one sends %d; a waiter takes %d bytes", n, all, one, each)
		})
	}
}

func TestWaitersThatGiveUpLeaveQueue(t *testing.T) {
	n := count(t, "LEASEHOLD_WAITERS", 1000, 4)
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.Config())
		theirs := w.Acquire(holder, "job")
		c, _ := w.Client(lab.Config())
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if _, err := c.Acquire(ctx, "job"); !errors.Is(err, context.Canceled) || !errors.Is(err, leasehold.ErrHeld) {
					t.Errorf("error %v", err)
				}
			})
		}
		last := make(chan error, 1)
		synctest.Wait()
		go func() {
			lock, err := c.Acquire(t.Context(), "job")
			if err == nil {
				err = lock.Release(t.Context())
			}
			last <- err
		}()
		synctest.Wait()
		cancel()
		wg.Wait()
		w.Release(theirs)
		began := time.Now()
		lab.OK(t, <-last)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the last one had it after %v", took)
		}
		_ = c.Close(t.Context())
		_ = holder.Close(t.Context())
	})
}
