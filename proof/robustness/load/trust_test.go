package load

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// held contains locks by their keys. It is safe for concurrent use.
type held struct {
	mu    sync.Mutex
	locks map[string]*leasehold.Lock
	least time.Duration // shortest time for which a lock was still trusted when the answer to its renewal arrived
	seen  int           // number of renewals that were answered
}

func (h *held) add(lock *leasehold.Lock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.locks[lock.Key().Partition] = lock
}

// look updates h.least with the time for which the client still trusts the locks with the given
// keys. It is called just before the reply to a renewal arrives. At this moment the time is
// shortest, because the reply prolongs the trust.
func (h *held) look(keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen++
	for _, key := range keys {
		lock := h.locks[key]
		if lock == nil { // key is the row of a shared lease, so any lock of the client shows the remaining time
			for _, any := range h.locks {
				lock = any
				break
			}
		}
		if lock != nil {
			h.least = min(h.least, time.Until(lock.TrustedUntil()))
		}
	}
}

// distant simulates a network with the given round-trip time.
func (h *held) distant(roundTrip time.Duration) lab.Fault {
	return func(r *lab.Request) (*http.Response, error) {
		time.Sleep(roundTrip / 2)
		res, err := r.Send()
		time.Sleep(roundTrip / 2)
		if r.Renews() {
			h.look(r.Keys())
		}
		return res, err
	}
}

// acquire acquires n keys in parallel, and calls the given function with each lock.
func acquire(t *testing.T, c *leasehold.Client, n int, then func(*leasehold.Lock)) {
	t.Helper()
	var wg sync.WaitGroup
	const together = 100
	for first := range together {
		wg.Go(func() {
			for i := first; i < n; i += together {
				lock, err := c.Acquire(t.Context(), fmt.Sprint("job/", i))
				if err != nil {
					t.Error(err)
					return
				}
				then(lock)
			}
		})
	}
	wg.Wait()
}

func TestManyLocksAreAllRenewedBeforeHalfTheirLeaseHasPassed(t *testing.T) {
	n := count(t, "LEASEHOLD_LOCKS", 10_000, 20)
	for kind, config := range lab.Leases() {
		lab.Each(t, map[string]time.Duration{
			kind + ", 5ms":  5 * time.Millisecond,
			kind + ", 20ms": 20 * time.Millisecond,
		}, func(t *testing.T, w *lab.World, roundTrip time.Duration) {
			h := &held{locks: map[string]*leasehold.Lock{}, least: math.MaxInt64}
			c, wire := w.Client(config)
			wire.SetFault(h.distant(roundTrip))
			acquire(t, c, n, h.add)
			trust := 18 * time.Second // the lease minus its margin
			lab.Elapse(3 * 20 * time.Second)
			h.mu.Lock()
			for key, lock := range h.locks {
				lab.WantErr(t, key, lock.Err(), nil)
				h.least = min(h.least, time.Until(lock.TrustedUntil()))
			}
			if len(h.locks) != n || h.seen == 0 {
				t.Errorf("%d locks, %d renewals", len(h.locks), h.seen)
			}
			if h.least < trust/2 {
				t.Errorf("a lock had only %v of %v of trust left", h.least, trust)
			}
			seen, least := h.seen, h.least
			h.mu.Unlock()
			began := time.Now()
			lab.OK(t, c.Close(t.Context()))
			took := time.Since(began)
			lab.WantRange(t, "Close took", took, 0, 5*time.Second)
			t.Logf("%d locks for three leases, a round trip of %v: %d renewals, 0 lost, never less than %v of %v of trust left; closed in %v",
				n, roundTrip, seen, least.Round(time.Millisecond), trust, took.Round(time.Millisecond))
			other, _ := w.Client(lab.Config())
			for _, i := range []int{0, n / 2, n - 1} {
				if _, err := other.TryAcquire(t.Context(), fmt.Sprint("job/", i)); err != nil && kind == "a lease each" {
					t.Errorf("acquire after Close: %v", err)
				}
			}
			_ = other.Close(t.Context())
		})
	}
}
