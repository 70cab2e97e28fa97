package behaviour_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// A waiter that dies blocks the key when its turn comes. It blocks the key for a hand-over
// lease, or for a full lease if it had just sent a grant.
func TestQueueKeepsWorkingWhileWaitersDieEveryTwoSeconds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var mu sync.Mutex
		var worked time.Duration
		begin := func() (kill func() bool) {
			holds := false
			c, wire := w.Client(lab.Config())
			wire.SetFault(lab.Far(roundTrip))
			own, leave := context.WithCancel(ctx)
			all.Go(func() {
				for own.Err() == nil {
					lock, err := c.Acquire(own, "job")
					if err != nil {
						continue
					}
					mu.Lock()
					holds = true
					mu.Unlock()
					time.Sleep(500 * time.Millisecond)
					_ = lock.Release(context.Background())
					mu.Lock()
					worked += 500 * time.Millisecond
					holds = false
					mu.Unlock()
				}
			})
			return func() bool {
				mu.Lock()
				defer mu.Unlock()
				if !holds {
					wire.SetFault(lab.Cut)
					leave()
				}
				return !holds
			}
		}
		for range 4 {
			begin() // these four clients are never killed: waiters would observe a dead holder for a whole lease
		}
		var kills []func() bool
		for range 8 {
			kills = append(kills, begin())
		}
		lab.Elapse(10 * time.Second)
		mu.Lock()
		worked = 0
		mu.Unlock()
		const lasts = 10 * time.Minute
		for began := time.Now(); time.Since(began) < lasts; lab.Elapse(2 * time.Second) {
			i := 0
			for !kills[i]() {
				i++
			}
			kills = append(append(kills[:i:i], kills[i+1:]...), begin())
		}
		mu.Lock()
		share := worked.Seconds() / lasts.Seconds()
		mu.Unlock()
		if share < 0.7 { // the share of the time that clients work; without suspensions of the queue it is a quarter
			t.Errorf("worked for %.2f of the time", share)
		}
		stop()
		all.Wait()
		lab.Elapse(time.Minute)
	})
}
