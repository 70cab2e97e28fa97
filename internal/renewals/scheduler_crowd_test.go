package renewals_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// about returns a predicate for requests whose key has the given prefix.
func about(prefix string) func(lab.Call) bool {
	return func(c lab.Call) bool { return bytes.Contains(c.Body, []byte(`"S":"`+prefix)) }
}

func TestHangingRenewalsDoNotCauseLossOfOtherLocks(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		hung := w.AcquireMany(c, "hangs", lab.Crowd())
		short := w.AcquireMany(c, "short", 100, leasehold.WithLease(2*time.Second))
		wire.SetFault(lab.On(about("hangs/"), lab.Cut))
		before, most := runtime.NumGoroutine(), 0
		for range 17 {
			lab.Elapse(time.Second)
			most = max(most, runtime.NumGoroutine()-before)
		}
		lab.Want(t, "lost locks whose renewals are answered", lab.Lost(short), 0)
		lab.Elapse(15 * time.Second)
		lab.Want(t, "lost locks whose renewals hang", lab.Lost(hung), len(hung))
		// Of the limit, 8 is for timers that fire just when the goroutines are counted.
		lab.WantRange(t, "additional goroutines", most, 0, 4*128+8)
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestDueRenewalNeedsNoGoroutineBeforeItIsSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config(), lab.Renewals(16))
		w.AcquireMany(c, "job", lab.Crowd())
		wire.SetFault(lab.Slow(time.Second))
		before := runtime.NumGoroutine()
		lab.Elapse(6 * time.Second) // all renewals become due in this time
		if n := runtime.NumGoroutine() - before; n > 4*16 {
			t.Errorf("%d goroutines for 16 renewals at a time", n)
		}
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestRenewalThatWaitsForSlotDoesNotDelayCommit(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config(), lab.Renewals(16))
		locks := w.AcquireMany(c, "job", 200)
		wire.SetFault(lab.On(lab.Call.Renews, lab.Cut))
		lab.Elapse(6 * time.Second) // all renewals become due in this time, but only 16 have a slot
		slowest := time.Duration(0)
		for _, l := range locks[:20] {
			began := time.Now()
			lab.OK(t, l.Commit(t.Context(), nil))
			slowest = max(slowest, time.Since(began))
		}
		// A commit waits for no renewal, except one of its own lock that is in flight.
		lab.WantRange(t, "time of the slowest commit", slowest, 0, 2*time.Second)
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

// bunched waits for the given duration. It returns the largest number of renewals that were sent
// within one window.
func bunched(wire *lab.Wire, during, window time.Duration) int {
	most := 0
	wire.Sent()
	for range during / window {
		lab.Elapse(window)
		most = max(most, lab.Count(wire.Sent(), lab.Call.Renews))
	}
	return most
}

func TestSimultaneousRenewalsAreSpreadWithinTwoRenewalPeriods(t *testing.T) {
	const window = 500 * time.Millisecond
	const locks, evenShare = 500, 500 / 10 // evenShare is the number of renewals in each window if 500 are spread evenly over 5 s
	until := func(end time.Time) lab.Fault {
		return func(r *lab.Request) (*http.Response, error) {
			select {
			case <-time.After(time.Until(end)):
				return r.Send()
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
	}
	stall := func(wire *lab.Wire) {
		lab.Elapse(28 * time.Second)
		wire.SetFault(until(time.Now().Add(1900 * time.Millisecond)))
		lab.Elapse(1900 * time.Millisecond)
	}
	// A stall makes renewals late. The next renewals of these leases come at random times, so a
	// window has more than tc.most renewals only once in millions of runs. Without random times, a
	// window would have 100 or more, and over 300 after a stall with few slots.
	type row struct {
		places int
		most   int
		happen func(wire *lab.Wire)
	}
	lab.Each(t, map[string]row{
		"by their grants":           {128, 92, func(*lab.Wire) {}},
		"by a stall":                {128, 98, stall},
		"by a stall with few slots": {16, 130, stall},
		"by an outage": {128, 92, func(wire *lab.Wire) {
			lab.Elapse(30 * time.Second)
			wire.SetFault(lab.Cut)
			lab.Elapse(8 * time.Second)
		}},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire := w.Client(lab.Config(), lab.Renewals(tc.places))
		held := w.AcquireMany(c, "job", locks)
		tc.happen(wire)
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
		if n := bunched(wire, 5*time.Second, window); n > tc.most {
			t.Errorf("%d renewals within %v, the even share is %d", n, window, evenShare)
		}
		lab.Want(t, "lost locks", lab.Lost(held), 0)
		_ = c.Close(t.Context())
	})
}

func TestFirstRenewalsOfManyLocksAreSpread(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		w.AcquireMany(c, "job", 500)
		// If spread evenly over the second half of the period, 20 renewals would be sent within 100 ms.
		lab.WantRange(t, "renewals within 100 ms", bunched(wire, 5*time.Second, 100*time.Millisecond), 0, 70)
		_ = c.Close(t.Context())
	})
}

// takes returns a fault that simulates a table with little capacity. The table accepts
// perSecond requests in each second, and throttles all others.
func takes(perSecond int) lab.Fault {
	var mu sync.Mutex
	began, taken := time.Now(), 0
	return func(r *lab.Request) (*http.Response, error) {
		mu.Lock()
		if time.Since(began) >= time.Second {
			began, taken = time.Now(), 0
		}
		taken++
		refused := taken > perSecond
		mu.Unlock()
		if refused {
			return lab.Throttled(r)
		}
		return r.Send()
	}
}

func TestThrottledRenewalsAreSlowedWithoutLossOfLocks(t *testing.T) {
	// For 500 locks, the client usually sends 100 renewals a second. But 28 a second are enough to
	// keep all locks trusted.
	const n = 500
	for _, perSecond := range []int{60, 40} {
		t.Run(fmt.Sprint(perSecond, " a second"), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				locks := w.AcquireMany(c, "job", n)
				wire.SetFault(takes(perSecond))
				wire.Sent()
				lab.Elapse(time.Minute)
				lab.Want(t, "lost locks", lab.Lost(locks), 0)
				lab.WantRange(t, "requests", len(wire.Sent()), 0, perSecond*60*5/4)
				wire.SetFault(nil)
				lab.Elapse(30 * time.Second)
				wire.Sent()
				lab.Elapse(10 * time.Second)
				lab.WantRange(t, "renewals in two periods after the throttling", len(wire.Sent()), 2*n*95/100, 2*n*105/100)
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestLocksOutsideThrottledPartitionAreNotLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		var locks []*leasehold.Lock
		for i := range 40 {
			w.AcquireMany(c, fmt.Sprint("hot/", i), 10)
			locks = append(locks, w.AcquireMany(c, fmt.Sprint("job/", i), 10)...)
		}
		wire.SetFault(lab.On(about("hot/"), lab.Throttled))
		lab.Elapse(30 * time.Second)
		lab.Want(t, "lost locks whose renewals are answered", lab.Lost(locks), 0)
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestLockIsNotLostAfterSlowGrant(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(2500*time.Millisecond)))
		lock := w.Acquire(c, "job", leasehold.WithLease(3*time.Second))
		lab.Elapse(time.Minute)
		lab.WantErr(t, "lost", lock.Err(), nil)
		_ = lock.Release(t.Context())
	})
}

func TestReasonForLossIsExpiredIfRenewalHadToWaitForOthers(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config(), lab.Renewals(16))
		locks := w.AcquireMany(c, "job", 500)
		wire.SetFault(lab.Cut)
		lab.Elapse(20 * time.Second)
		for _, l := range locks {
			var lost *leasehold.LostError
			if !errors.As(l.Err(), &lost) || lost.Reason != leasehold.LostExpired {
				t.Fatalf("%v", l.Err())
			}
		}
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestLockIsNotLostIfCallOfRenewIsThrottled(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Holding(lab.Config())
		wire.SetFault(lab.On(func(c lab.Call) bool { return c.Renews() && c.Sets("data") }, lab.Throttled))
		lab.WantErr(t, "renew", lock.Renew(w.Within(time.Minute), leasehold.WithData([]byte("much"))), context.DeadlineExceeded)
		lab.WantErr(t, "lost", lock.Err(), nil)
		_ = lock.Release(t.Context())
	})
}

func TestThousandsOfLocksAreRenewedInTime(t *testing.T) { // dynamolock renews its locks one after another, so in this test half of them would expire
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		n := 2 * lab.Crowd()
		c, wire := w.Client(lab.Config())
		locks := w.AcquireMany(c, "job", n)
		slow := 10 * time.Second / time.Duration(n) // so slow that sending one renewal after another would take two periods
		var now, most atomic.Int64
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(slow)
			return r.Send()
		})
		lab.Elapse(time.Minute)
		for _, l := range locks {
			lab.WantErr(t, l.Key().String(), l.Err(), nil)
		}
		lab.WantRange(t, "renewals at a time", most.Load(), 0, 128)
		if s := c.Stats(); s.Held != n || s.MinRemaining < 10*time.Second {
			t.Errorf("stats %+v", s)
		}
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
	})
}
