package behaviour_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// A section is the work of a client while it holds the key. The constant "limit" is the least time
// from the start of one section to the start of the next. It includes a round trip for the grant
// and one for the release.
const (
	sectionTakes = 10 * time.Millisecond
	roundTrip    = 6 * time.Millisecond
	limit        = sectionTakes + 2*roundTrip
)

// startWithin is the period in which clients start, each at a random time, so that the clients have
// waited for different lengths of time.
const startWithin = 100 * time.Millisecond

// contention is the measured result of clients that contend for keys.
type contention struct {
	each      time.Duration // mean time from the start of one section to the start of the next
	works     time.Duration // mean length of a section
	longest   time.Duration // longest wait of a client for a grant
	overtaken int           // largest number of grants to other clients during one wait
	requests  float64       // requests for each section
	used      lab.Units
}

// contend runs clients that repeatedly acquire one of the given keys. The function "takes" returns
// the length of a section. The function "far" returns the length of a round trip. Time is virtual,
// so the result is the same on every machine.
func contend(t *testing.T, cfg leasehold.Config, keys []leasehold.Key, clients, sections int, takes, far func(*rand.Rand) time.Duration) (c contention) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var mu sync.Mutex // guards granted and c
		granted := 0
		var all sync.WaitGroup
		began := time.Now()
		for i := range clients {
			own := cfg
			own.Owner += fmt.Sprint("c", i)
			chance := rand.New(rand.NewPCG(2, uint64(i)))
			client, wire := w.Client(own)
			wire.Meter = &lab.Meter{}
			wire.SetFault(distant(far, uint64(i)))
			section := func() (another bool) {
				since := time.Now()
				mu.Lock()
				before := granted
				mu.Unlock()
				if before >= sections {
					return false
				}
				lock, err := acquireOneOf(t.Context(), client, keys)
				if err != nil {
					t.Error(err)
					return false
				}
				mu.Lock()
				c.longest, c.overtaken = max(c.longest, time.Since(since)), max(c.overtaken, granted-before)
				granted++
				work := takes(chance)
				c.works += work
				mu.Unlock()
				time.Sleep(work)
				w.Release(lock)
				return true
			}
			all.Go(func() {
				time.Sleep(time.Duration(chance.Int64N(int64(startWithin))))
				more := true
				for more {
					more = section()
				}
				_ = client.Close(t.Context())
				mu.Lock()
				defer mu.Unlock()
				units := wire.Meter.Reset()
				c.requests += float64(len(wire.Sent()))
				c.used.Write, c.used.Read = c.used.Write+units.Write, c.used.Read+units.Read
			})
		}
		all.Wait()
		n := float64(granted)
		c.each, c.works = time.Since(began)/time.Duration(granted), c.works/time.Duration(granted)
		c.requests, c.used.Write, c.used.Read = c.requests/n, c.used.Write/n, c.used.Read/n
	})
	return c
}

// acquireOneOf acquires one of the given keys. If there is only one key, it calls Acquire instead of
// AcquireAny.
func acquireOneOf(ctx context.Context, c *leasehold.Client, keys []leasehold.Key) (*leasehold.Lock, error) {
	if len(keys) == 1 {
		return c.Acquire(ctx, keys[0].Partition)
	}
	return c.AcquireAny(ctx, keys)
}

func equal(*rand.Rand) time.Duration { return sectionTakes }

// exponential returns random section lengths. They expose a client that relies on sections of equal
// length: it polls at the wrong times, so the key stays idle.
func exponential(chance *rand.Rand) time.Duration {
	return time.Duration(chance.ExpFloat64() * float64(sectionTakes))
}

// uneven returns round trips that are up to a tenth longer or shorter than roundTrip. With
// equal round trips, clients that poll regularly would all poll at the same times.
func uneven(chance *rand.Rand) time.Duration {
	return roundTrip*9/10 + time.Duration(chance.Int64N(int64(roundTrip/5)))
}

// longTailed returns round trips whose mean is roundTrip. One round trip in a hundred is longer: on
// average, five times as long as the others.
func longTailed(chance *rand.Rand) time.Duration {
	rare := time.Duration(0)
	if chance.IntN(100) == 0 {
		rare = time.Duration(chance.ExpFloat64() * float64(4*roundTrip))
	}
	return roundTrip*2/3 + time.Duration(chance.ExpFloat64()*float64(roundTrip)*.29) + rare
}

// distant returns a fault that delays each request by one round trip. The function "far" returns
// the length of the round trip.
func distant(far func(*rand.Rand) time.Duration, seed uint64) lab.Fault {
	var mu sync.Mutex // guards chance
	chance := rand.New(rand.NewPCG(1, seed))
	return func(r *lab.Request) (*http.Response, error) {
		mu.Lock()
		d := far(chance)
		mu.Unlock()
		return lab.Far(d)(r)
	}
}

// In layouts without a queue every waiter polls. Results vary by chance, so the test accepts a
// tenth more than the recorded values. The number of sections is so large that a correct client
// exceeds a bound only once in many million runs.
func TestPollingCostOfContendedLockStaysWithinRecordedBounds(t *testing.T) {
	lab.SkipUnderRace(t, "measures waits and costs")
	for _, recorded := range []struct {
		clients, sections       int
		requests, writes, reads float64
	}{
		{4, 1000, 4.6, 2.6, 2.0},
		{16, 227, 14.9, 4.8, 10.1},
	} {
		t.Run(fmt.Sprint(recorded.clients, " clients"), func(t *testing.T) {
			c := contend(t, lab.ConfigOf("locks", layout.AWSLabs{}), leasehold.Keys("job"), recorded.clients, recorded.sections, equal, uneven)
			for what, is := range map[string]struct{ got, most float64 }{
				"requests":    {c.requests, recorded.requests},
				"write units": {c.used.Write, recorded.writes},
				"read units":  {c.used.Read, recorded.reads},
				"ms":          {c.each.Seconds() * 1000, limit.Seconds() * 1000},
			} {
				if is.got > is.most*1.1 {
					t.Errorf("%.2f %s for each section, want at most a tenth more than %.2f", is.got, what, is.most)
				}
			}
		})
	}
}

// A holder may hand the key to a waiter that has died. The key then stays blocked for the short
// lease of the hand-over. A waiter may also send a grant and die immediately afterwards. The key
// then stays blocked for a full lease.
func TestKeyIsHeldMostOfTheTimeWhileQueuedWaitersDie(t *testing.T) {
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
			begin() // the test never kills these four clients
		}
		var kills []func() bool
		for range 8 {
			kills = append(kills, begin())
		}
		lab.Elapse(10 * time.Second)
		mu.Lock()
		worked = 0
		mu.Unlock()
		lasts := lab.Cases(10*time.Minute, 3*time.Minute)
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
		// A client that takes the key over from a dead head of the queue suspends the queue.
		// Otherwise the key would next be handed to other dead waiters, and share would be only a
		// quarter.
		if share < 0.7 {
			t.Errorf("clients worked under the lock for %.2f of the time", share)
		}
		stop()
		all.Wait()
		lab.Elapse(time.Minute)
	})
}

// While the key is held, the head of the queue reads the record four times a second. The other
// queued waiters read it once a second. Most waiters find no room in the queue, and read the record
// once in twelve seconds.
func TestThousandWaitersSendFewReads(t *testing.T) {
	lab.SkipUnderRace(t, "measures waits and costs")
	waiters, most := lab.Cases(1000, 100), lab.Cases(120, 36)
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		lock := holds(w, "job")
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		wires := make([]*lab.Wire, waiters)
		for i := range wires {
			c, wire := w.Client(lab.Config())
			wire.SetFault(distant(uneven, uint64(i)))
			wires[i] = wire
			all.Go(func() {
				lab.WantErr(t, "the wait", lab.ErrorOf(c.Acquire(ctx, "job")), context.Canceled)
				lab.OK(t, c.Close(context.WithoutCancel(ctx)))
			})
		}
		sent := func(during time.Duration) (n int) {
			lab.Elapse(during)
			for _, wire := range wires {
				n += len(wire.Sent())
			}
			return n
		}
		sent(2 * time.Minute)
		lab.WantRange(t, "requests in a minute", sent(time.Minute), 60, 60*most)
		leave()
		all.Wait()
		w.Release(lock)
	})
}
