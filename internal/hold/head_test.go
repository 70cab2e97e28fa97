package hold_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// What a section takes, and how far the table is.
const (
	sectionTakes = 10 * time.Millisecond
	roundTrip    = 6 * time.Millisecond
)

func inLine() leasehold.Config {
	cfg := lab.Config()
	cfg.Line = true
	return cfg
}

// acquire is how a goroutine of a crowd comes by a lock.
type acquire func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error)

func theJob(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
	return c.Acquire(ctx, "job")
}

// amongCrowd plays fn beside processes whose goroutines work in sections, one after the
// other, for as long as it takes. Who gives up then leaves the line.
func amongCrowd(t *testing.T, cfg leasehold.Config, processes, goroutines int, acquire acquire, fn func(w *lab.World)) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range processes {
			c, wire := w.Client(cfg)
			wire.SetFault(lab.Far(roundTrip + time.Duration(i)*time.Microsecond)) // no two are equally far
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

// However many goroutines of one or two processes wait. Every 16th hand-over in a row ends
// the row as well: the two may coincide.
func TestEverySixteenthReleaseIsForAnybody(t *testing.T) {
	for _, tc := range []struct{ processes, goroutines, least int }{{4, 1, 10}, {1, 20, 3}, {2, 20, 30}} {
		amongCrowd(t, inLine(), tc.processes, tc.goroutines, theJob, func(w *lab.World) {
			other, _ := w.Client(inLine())
			granted := 0
			for began := time.Now(); time.Since(began) < 15*time.Second; time.Sleep(2 * time.Millisecond) {
				if lock, err := other.TryAcquire(context.Background(), "job"); err == nil {
					granted++
					w.Release(lock)
				}
			}
			if granted < tc.least {
				t.Errorf("%+v: a try each 2 ms was granted the key %d times", tc, granted)
			}
		})
	}
}

// However long their sections are: at a minute each, 128 of them take two hours.
func TestGoroutinesThatHandTheKeyOnLeaveItToAnybodyAboutEveryTenSeconds(t *testing.T) {
	for _, section := range []time.Duration{time.Second, 7 * time.Second, time.Minute} {
		t.Run(section.String(), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				ctx, stop := context.WithCancel(t.Context())
				c, wire := w.Client(inLine())
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
				lab.Elapse(section / 2)
				other, _ := w.Client(inLine())
				began := time.Now()
				for {
					if lock, err := other.TryAcquire(t.Context(), "job"); err == nil {
						w.Release(lock)
						break
					}
					if time.Since(began) > 10*time.Second+section {
						t.Errorf("in %v the key was free at no try", time.Since(began))
						break
					}
					time.Sleep(5 * time.Millisecond)
				}
				stop()
				all.Wait()
				lab.Elapse(time.Second)
			})
		})
	}
}

// They stand in no line, so none of them says that nobody waits.
func TestWhoWantsOneOfSeveralKeysHasItsTurnAmongGoroutinesThatDo(t *testing.T) {
	keys := []leasehold.Key{{Partition: "job"}, {Partition: "job 2"}}
	one := func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
		return c.AcquireAny(ctx, keys)
	}
	amongCrowd(t, inLine(), 1, 8, one, func(w *lab.World) {
		waitsAtMost(t, w, 2*time.Second, one)
	})
}

// One of many goroutines beside one process: the line of the record has its turn all the same.
func TestProcessInLineHasItsTurnAmongTheGoroutinesOfAnother(t *testing.T) {
	amongCrowd(t, inLine(), 1, 16, theJob, func(w *lab.World) {
		waitsAtMost(t, w, 40*(sectionTakes+2*roundTrip), theJob)
	})
}

// waitsAtMost has another process come fifty times, one after the other.
func waitsAtMost(t *testing.T, w *lab.World, most time.Duration, acquire acquire) {
	t.Helper()
	c, wire := w.Client(inLine())
	wire.SetFault(lab.Far(roundTrip))
	for range 50 {
		limit, cancel := context.WithTimeout(context.Background(), most)
		lock, err := acquire(limit, c)
		cancel()
		if err != nil {
			t.Errorf("another process was granted nothing in %v: %v", most, err)
			return
		}
		time.Sleep(sectionTakes)
		w.Release(lock)
	}
}

func TestGoroutinesWhoHaveHandedTheKeyOnGoOnAtOnceIfNoProcessWaits(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(inLine())
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
