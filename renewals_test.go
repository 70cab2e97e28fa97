package leasehold_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

// acquireMany acquires n locks with keys of that prefix.
func (w *world) acquireMany(c *leasehold.Client, prefix string, n int, opts ...leasehold.AcquireOption) []*leasehold.Lock {
	w.t.Helper()
	locks := make([]*leasehold.Lock, n)
	for i := range locks {
		locks[i] = w.acquire(c, fmt.Sprintf("%s/%d", prefix, i), opts...)
	}
	return locks
}

// lost counts locks that are not trusted any more.
func lost(locks []*leasehold.Lock) int {
	n := 0
	for _, l := range locks {
		if l.Err() != nil {
			n++
		}
	}
	return n
}

// hanging never answers renewals of keys with that prefix.
func hanging(prefix string) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	return func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
		if c.renews() && bytes.Contains(c.body, []byte(`"S":"`+prefix)) {
			return hang(ctx)
		}
		return next()
	}
}

func TestLocksWhoseRenewalsHangCostNoOtherLockItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		hung := w.acquireMany(c, "hangs", 1000)
		short := w.acquireMany(c, "short", 100, leasehold.WithLease(2*time.Second))
		wire.setFault(hanging("hangs/"))
		before, most := runtime.NumGoroutine(), 0
		for range 17 {
			elapse(time.Second)
			most = max(most, runtime.NumGoroutine()-before)
		}
		if n := lost(short); n > 0 {
			t.Errorf("%d of %d locks lost whose renewals would have been answered at once", n, len(short))
		}
		elapse(15 * time.Second)
		if n := lost(hung); n != len(hung) {
			t.Fatalf("%d of %d locks lost whose renewals hang", n, len(hung))
		}
		if most > 4*128+8 { // and timers that fire at that very moment
			t.Errorf("%d goroutines more for 1,100 locks", most)
		}
		wire.setFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestADueRenewalCostsNoGoroutineUntilItIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := config()
		cfg.RenewConcurrency = 16
		c, wire := w.client(cfg)
		w.acquireMany(c, "job", 2000)
		wire.setFault(slow(time.Second))
		before := runtime.NumGoroutine()
		elapse(6 * time.Second) // all are due
		if n := runtime.NumGoroutine() - before; n > 4*16 {
			t.Errorf("%d goroutines for 16 renewals at a time", n)
		}
		wire.setFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestARenewalThatQueuesHoldsUpNoCommit(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := config()
		cfg.RenewConcurrency = 16
		c, wire := w.work().client(cfg)
		locks := w.acquireMany(c, "job", 200)
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.renews() {
				return hang(ctx)
			}
			return next()
		})
		elapse(6 * time.Second) // all are due, few have a place
		slowest := time.Duration(0)
		for _, l := range locks[:20] {
			began := time.Now()
			if err := l.Commit(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, time.Since(began))
		}
		if slowest > 2*time.Second { // of the lock's own renewal under way
			t.Errorf("a commit took %v", slowest)
		}
		wire.setFault(nil)
		_ = c.Close(t.Context())
	})
}

// bunched returns the most renewals within 100 ms of a time.
func bunched(wire *wire, during time.Duration) int {
	most := 0
	wire.sent()
	for range during / (100 * time.Millisecond) {
		elapse(100 * time.Millisecond)
		n := 0
		for _, c := range wire.sent() {
			if c.renews() {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestRenewalsAreSpreadOutAgainTwoPeriodsAfterTheyWereBunched(t *testing.T) {
	const locks, evenShare = 1000, 1000 / 50 // per 100 ms of 5 s
	until := func(end time.Time) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
		return func(ctx context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			select {
			case <-time.After(time.Until(end)):
				return next()
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	stall := func(wire *wire) {
		elapse(28 * time.Second)
		wire.setFault(until(time.Now().Add(1900 * time.Millisecond)))
		elapse(1900 * time.Millisecond)
	}
	for name, tc := range map[string]struct {
		places int
		happen func(wire *wire)
	}{
		"by their grants":                    {128, func(*wire) {}},
		"by a stall":                         {128, stall},
		"by a stall that most wait out here": {16, stall},
		"by an outage": {128, func(wire *wire) {
			elapse(30 * time.Second)
			wire.setFault(cut)
			elapse(8 * time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				cfg := config()
				cfg.RenewConcurrency = tc.places
				c, wire := w.client(cfg)
				held := w.acquireMany(c, "job", locks)
				tc.happen(wire)
				wire.setFault(nil)
				elapse(10 * time.Second)
				if n := bunched(wire, 5*time.Second); n > 5*evenShare/2 { // by chance
					t.Errorf("%d renewals within 100 ms, the even share is %d", n, evenShare)
				}
				if n := lost(held); n > 0 {
					t.Errorf("%d lost", n)
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestTheFirstRenewalsOfLocksGrantedTogetherAreSpread(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		w.acquireMany(c, "job", 500)
		if n := bunched(wire, 5*time.Second); n > 70 { // 20 is the even share of the second half
			t.Errorf("%d of 500 renewals within 100 ms", n)
		}
		_ = c.Close(t.Context())
	})
}

// takes is a table that takes so many writes a second and throttles others.
func takes(perSecond int) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	var mu sync.Mutex
	began, taken := time.Now(), 0
	return func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
		mu.Lock()
		if time.Since(began) >= time.Second {
			began, taken = time.Now(), 0
		}
		taken++
		refused := taken > perSecond
		mu.Unlock()
		if refused {
			return refusal(400, "ProvisionedThroughputExceededException"), nil
		}
		return next()
	}
}

func TestATableThatThrottlesDecidesHowFastLocksAreRenewedNotHowManyAreLost(t *testing.T) {
	for _, perSecond := range []int{120, 80} {
		t.Run(fmt.Sprint(perSecond, " a second"), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.client(config())
				locks := w.acquireMany(c, "job", 1000) // 200 a second, and 56 that keep all trusted
				wire.setFault(takes(perSecond))
				wire.sent()
				elapse(time.Minute)
				if n := lost(locks); n > 0 {
					t.Errorf("%d of %d locks lost", n, len(locks))
				}
				if n := len(wire.sent()); n > perSecond*60*5/4 {
					t.Errorf("%d requests, the table took %d", n, perSecond*60)
				}
				wire.setFault(nil)
				elapse(30 * time.Second)
				wire.sent()
				elapse(10 * time.Second)
				if n := len(wire.sent()); n < 1900 || n > 2100 {
					t.Errorf("%d renewals in two periods after the throttling", n)
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestLocksWhosePartitionThrottlesCostNoOtherLockItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		var locks []*leasehold.Lock
		for i := range 40 {
			w.acquireMany(c, fmt.Sprint("hot/", i), 10)
			locks = append(locks, w.acquireMany(c, fmt.Sprint("job/", i), 10)...)
		}
		wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if bytes.Contains(c.body, []byte(`"S":"hot/`)) {
				return refusal(400, "ProvisionedThroughputExceededException"), nil
			}
			return next()
		})
		elapse(30 * time.Second)
		if n := lost(locks); n > 0 {
			t.Errorf("%d of %d locks lost whose renewals would have been answered at once", n, len(locks))
		}
		wire.setFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestTheFirstRenewalAfterASlowGrantComesByTheTrustLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		wire.setFault(once(call.grants, slow(2500*time.Millisecond)))
		lock := w.acquire(c, "job", leasehold.WithLease(3*time.Second))
		elapse(time.Minute)
		if err := lock.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		_ = lock.Release(t.Context())
	})
}

func TestALockLostWhileItsRenewalQueuesDoesNotBlameAPause(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := config()
		cfg.RenewConcurrency = 16
		c, wire := w.client(cfg)
		locks := w.acquireMany(c, "job", 1000)
		wire.setFault(cut)
		elapse(20 * time.Second)
		for _, l := range locks {
			var lost *leasehold.LostError
			if !errors.As(l.Err(), &lost) || lost.Reason != leasehold.LostExpired {
				t.Fatalf("%v", l.Err())
			}
		}
		wire.setFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestARenewalThatStoresWhatDoesNotGetThroughKeepsPlainOnesFromNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		lock := w.acquire(c, "job")
		wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.renews() && c.sets("data") {
				return refusal(400, "ProvisionedThroughputExceededException"), nil
			}
			return next()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := lock.Renew(ctx, leasehold.WithData([]byte("much"))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("renew: %v", err)
		}
		if err := lock.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		_ = lock.Release(t.Context())
	})
}
