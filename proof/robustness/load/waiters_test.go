package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// throttles returns a fault that throttles all requests except one of every oneIn. If oneIn
// is zero, it throttles all requests.
func throttles(oneIn int64) lab.Fault {
	var n atomic.Int64
	return func(r *lab.Request) (*http.Response, error) {
		time.Sleep(5 * time.Millisecond)
		if oneIn > 0 && n.Add(1)%oneIn == 0 {
			return r.Send()
		}
		return lab.Refusal(http.StatusBadRequest, "ThrottlingException"), nil
	}
}

func TestCloseOnThrottledTableStopsWhenContextEnds(t *testing.T) {
	n := count(t, "LEASEHOLD_LOCKS", 10_000, 20)
	const within = 5 * time.Second
	for kind, config := range configs {
		for name, oneIn := range map[string]int64{"all is throttled": 0, "one in 20 comes through": 20} {
			t.Run(kind+", "+name, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, wire := w.Client(config())
					acquire(t, c, n, nop)
					wire.SetFault(throttles(oneIn))
					ctx, cancel := context.WithTimeout(t.Context(), within)
					defer cancel()
					began := time.Now()
					err := c.Close(ctx)
					if took := time.Since(began); took > within {
						t.Errorf("it took %v", took)
					}
					if err == nil && (oneIn == 0 || kind == "a lease each") {
						t.Error("no error, though locks are left to their leases")
					}
					if text := fmt.Sprint(err); err != nil && (len(text) > 500 || strings.Contains(text, "\n") || !strings.Contains(text, "throttled: raise")) {
						t.Errorf("it says %q", text)
					}
					if left := len(c.Held()); left > 0 {
						t.Errorf("%d locks are held by a closed client", left)
					}
					wire.SetFault(nil)
					lab.Elapse(25 * time.Second) // wait longer than a lease
					sent := len(wire.Sent())
					lab.Elapse(time.Minute)
					if more := len(wire.Sent()); more > 0 {
						t.Errorf("%d requests by a closed client, %d before", more, sent)
					}
				})
			})
		}
	}
}

// count returns the number in the given environment variable. If the variable is unset, it
// returns usual, or usual divided by part under the race detector.
func count(t *testing.T, variable string, usual, part int) int {
	t.Helper()
	given := os.Getenv(variable)
	if given == "" {
		if lab.Race {
			return usual / part
		}
		return usual
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: it must be a number above 0", variable, given)
	}
	return n
}
