package hold_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// sectionTakes is how long a client holds the key. roundTrip is the time from a request to
// its reply.
const (
	sectionTakes = 10 * time.Millisecond
	roundTrip    = 6 * time.Millisecond
)

// acquire is a function with which each goroutine of amongCrowd acquires its lock.
type acquire func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error)

func theJob(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
	return c.Acquire(ctx, "job")
}

// amongCrowd starts several processes with several goroutines each, and then runs fn. Each
// goroutine repeatedly acquires a lock, holds it for sectionTakes and releases it. When fn
// has returned, the goroutines stop, and their waiters leave the queue.
func amongCrowd(t *testing.T, cfg leasehold.Config, processes, goroutines int, acquire acquire, fn func(w *lab.World)) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range processes {
			c, wire := w.Client(cfg)
			wire.SetFault(lab.Far(roundTrip + time.Duration(i)*time.Microsecond)) // the processes have slightly different round trips
			for range goroutines {
				all.Go(func() {
					for ctx.Err() == nil {
						if lock, err := acquire(ctx, c); err == nil {
							time.Sleep(sectionTakes)
							w.Release(lock)
						}
					}
				})
			}
		}
		lab.Elapse(time.Second)
		fn(w)
		stop()
		all.Wait()
		lab.Elapse(time.Second)
	})
}

// TryAcquire must fail while any client holds the key, and also at the moment when the key
// is handed to the next waiter.
func TestTryAcquireFailsDuringHandOverBetweenWaiters(t *testing.T) {
	for _, tc := range []struct{ processes, goroutines int }{{4, 1}, {1, 20}, {2, 20}} {
		amongCrowd(t, lab.Config(), tc.processes, tc.goroutines, theJob, func(w *lab.World) {
			other, _ := w.Client(lab.Config())
			for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(2 * time.Millisecond) {
				if lock, err := other.TryAcquire(context.Background(), "job"); err == nil {
					t.Errorf("%+v: the key was free after %v", tc, time.Since(began))
					w.Release(lock)
					return
				}
			}
		})
	}
}

// A goroutine of the first process always waits, so the process could hand the key to its own
// goroutines forever. But each reply shows the record's queue. Once a waiter of the other process
// is there, the first process hands the key to this waiter.
func TestReleaseHandsKeyFirstToWaiterOfAnotherProcess(t *testing.T) {
	for _, section := range []time.Duration{100 * time.Millisecond, 7 * time.Second} {
		t.Run(section.String(), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				ctx, stop := context.WithCancel(t.Context())
				c, wire := w.Client(lab.Config())
				wire.SetFault(lab.Far(roundTrip))
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						for ctx.Err() == nil {
							if lock, err := theJob(ctx, c); err == nil {
								time.Sleep(section)
								w.Release(lock)
							}
						}
					})
				}
				lab.Elapse(section * 5 / 2)
				other, _ := w.Client(lab.Config())
				// The other client joins the record's queue while a goroutine of c holds the key.
				// If c does not know this yet when it releases the key, a second goroutine of c
				// gets the key first.
				if lock, err := theJob(w.Within(2*section+10*roundTrip+time.Second/4), other); err != nil {
					t.Error(err)
				} else {
					w.Release(lock)
				}
				stop()
				all.Wait()
				lab.Elapse(time.Second)
			})
		})
	}
}

func TestAcquireAnySucceedsAmongManyWaiters(t *testing.T) {
	keys := []leasehold.Key{{Partition: "job"}, {Partition: "job 2"}}
	one := func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
		return c.AcquireAny(ctx, keys)
	}
	t.Run("waiters for any key", func(t *testing.T) {
		amongCrowd(t, lab.Config(), 1, 8, one, func(w *lab.World) { waitsAtMost(t, w, 2*time.Second, one) })
	})
	t.Run("waiters for one key", func(t *testing.T) {
		other := 0
		either := func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
			return c.Acquire(ctx, keys[other%2].Partition)
		}
		for ; other < 2; other++ {
			amongCrowd(t, lab.Config(), 4, 4, either, func(w *lab.World) {
				holder, _ := w.Client(lab.Config())
				held := w.Acquire(holder, keys[1-other%2].Partition)
				waitsAtMost(t, w, 40*(sectionTakes+2*roundTrip), one)
				w.Release(held)
			})
		}
	})
}

func TestAcquireAllSucceedsAmongManyWaiters(t *testing.T) {
	both := func(ctx context.Context, c *leasehold.Client) (*leasehold.Group, error) {
		return c.AcquireAll(ctx, []leasehold.Key{{Partition: "another"}, {Partition: "job"}})
	}
	for _, tc := range []struct{ processes, goroutines int }{{8, 1}, {1, 8}, {4, 4}} {
		amongCrowd(t, lab.Config(), tc.processes, tc.goroutines, theJob, func(w *lab.World) {
			c, wire := w.Client(lab.Config())
			wire.SetFault(lab.Far(roundTrip))
			for range 20 {
				limit, cancel := context.WithTimeout(context.Background(), 40*(sectionTakes+2*roundTrip))
				group, err := both(limit, c)
				cancel()
				if err != nil {
					t.Errorf("%+v: %v", tc, err)
					return
				}
				time.Sleep(sectionTakes)
				lab.WantErr(t, "release", group.Release(context.Background()), nil)
			}
		})
	}
}

func TestAcquireAllLeavesQueueWhenContextEnds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Holding(lab.Config())
		c, _ := w.Client(lab.Config())
		lab.WantFailed(t, "acquire all", lab.ErrorOf(c.AcquireAll(w.Within(time.Second), []leasehold.Key{{Partition: "another"}, {Partition: "job"}})))
		lab.Elapse(time.Second)
		lab.WantErr(t, "renew", lock.Renew(t.Context()), nil)
		lab.Want(t, "length of the queue", len(lock.Record().Waiting), 0)
		w.Release(lock)
	})
}

// AcquireAny waits in the queues of two keys. If both keys are handed to the call at the same time,
// the call releases one of them.
func TestAcquireAnyJoinsTwoShortestQueues(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.Config())
		keys := []leasehold.Key{{Partition: "a"}, {Partition: "b"}, {Partition: "c"}}
		locks := map[string]*leasehold.Lock{}
		for _, key := range keys {
			locks[key.Partition] = w.Acquire(holder, key.Partition)
		}
		first, _ := w.Client(lab.Config())
		before := w.Queue(first, "a")
		lab.Elapse(100 * time.Millisecond)
		c, _ := w.Client(lab.Config())
		got := make(chan *leasehold.Lock, 1)
		go func() {
			lock, err := c.AcquireAny(t.Context(), keys)
			lab.WantErr(t, "acquire any", err, nil)
			got <- lock
		}()
		lab.Elapse(500 * time.Millisecond)
		for key, want := range map[string]int{"a": 1, "b": 1, "c": 1} {
			lab.OK(t, locks[key].Renew(t.Context()))
			lab.Want(t, "waiting for "+key, len(locks[key].Record().Waiting), want)
		}
		w.Release(locks["b"])
		w.Release(locks["c"])
		one := <-got
		lab.Elapse(time.Second)
		free := map[string]string{"b": "c", "c": "b"}[one.Key().Partition]
		w.WantReleased(free)
		w.Release(one)
		w.Release(locks["a"])
		w.Release(<-before)
	})
}

// The first request of a waiter to join the queue arrives after the waiter has joined again and has
// been handed the key. Nobody waits behind that entry.
func TestReleaseHandsKeyToNoAbandonedEntryOfItsClient(t *testing.T) {
	lab.Each(t, map[string]bool{"replies arrive": false, "replies are lost": true}, func(t *testing.T, w *lab.World, lost bool) {
		other, _, held := w.Holding(lab.Config())
		c, wire := w.Client(lab.Config())
		joins := func(c lab.Call) bool { return c.Sets("waiters") }
		wire.SetFault(lab.Once(joins, lab.Delayed(3*time.Second)))
		granted := w.Queue(c, "job")
		lab.Elapse(time.Second)
		w.Release(held)
		lock := <-granted
		lab.Elapse(3 * time.Second)
		next := w.Queue(other, "job")
		lab.OK(t, lock.Renew(t.Context()))
		lab.Want(t, "length of the queue", len(lock.Record().Waiting), 2)
		if lost {
			wire.SetFault(lab.LoseReply)
		}
		released := lab.Go(func() error { return lock.Release(w.Ended()) })
		began := time.Now()
		lock = <-next
		lab.WantTook(t, "next holder waited", began, 0, time.Second)
		lab.Want(t, "release has no answer", errors.Is(<-released, leasehold.ErrUnknownOutcome), lost)
		wire.SetFault(nil)
		w.Release(lock)
	})
}

// One process waits while many goroutines of another process contend for the key. The
// record's queue must still let the single process acquire the key.
func TestBusyProcessDoesNotStarveWaiterOfOtherProcess(t *testing.T) {
	amongCrowd(t, lab.Config(), 1, 16, theJob, func(w *lab.World) {
		waitsAtMost(t, w, 40*(sectionTakes+2*roundTrip), theJob)
	})
}

// waitsAtMost makes a new client acquire the key fifty times. It fails the test if one of the
// waits is longer than the given maximum.
func waitsAtMost(t *testing.T, w *lab.World, most time.Duration, acquire acquire) {
	t.Helper()
	c, wire := w.Client(lab.Config())
	wire.SetFault(lab.Far(roundTrip))
	for range 50 {
		limit, cancel := context.WithTimeout(context.Background(), most)
		lock, err := acquire(limit, c)
		cancel()
		if err != nil {
			t.Errorf("the key was not granted within %v: %v", most, err)
			return
		}
		time.Sleep(sectionTakes)
		w.Release(lock)
	}
}

func TestHandOverWithinProcessTakesOneRoundTrip(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Far(roundTrip))
		var all sync.WaitGroup
		const each, goroutines = 20, 64
		began := time.Now()
		for range goroutines {
			all.Go(func() {
				for range each {
					w.Release(w.Acquire(c, "job"))
				}
			})
		}
		all.Wait()
		if rate := float64(each*goroutines) * float64(roundTrip) / float64(time.Since(began)); rate < 0.95 {
			t.Errorf("%.4f hand-overs a round trip", rate)
		}
	})
}
