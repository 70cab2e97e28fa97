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

// These are the length of a section, the round trip to the table, and the least time from
// one section to the next. The last is the length of a section plus two round trips: one
// for a grant and one for a release.
const (
	sectionTakes = 10 * time.Millisecond
	roundTrip    = 6 * time.Millisecond
	limit        = sectionTakes + 2*roundTrip
)

// startWithin is the time within which the clients start. If they all started at the same
// instant, no waiter would have waited a little longer than another.
const startWithin = 100 * time.Millisecond

// contention is the result of clients that all acquire one key repeatedly.
type contention struct {
	each      time.Duration // mean time from one section to the next
	works     time.Duration // mean length of a section
	longest   time.Duration // longest wait
	overtaken int           // most grants to other clients during one wait
	requests  float64       // requests per section; the fields below are per section, too
	used      lab.Units
}

// contend lets clients contend for the first free of keys in the virtual time of a bubble, so
// that the result is the same on every machine.
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

// acquireOneOf acquires the first free key of keys. It calls Acquire if there is only one.
func acquireOneOf(ctx context.Context, c *leasehold.Client, keys []leasehold.Key) (*leasehold.Lock, error) {
	if len(keys) == 1 {
		return c.Acquire(ctx, keys[0].Partition)
	}
	return c.AcquireAny(ctx, keys)
}

func equal(*rand.Rand) time.Duration { return sectionTakes }

// exponential returns lengths of sections that vary at random. If a client expected equal
// lengths, it would leave the key idle.
func exponential(chance *rand.Rand) time.Duration {
	return time.Duration(chance.ExpFloat64() * float64(sectionTakes))
}

// uneven returns round trips that differ by up to a tenth. If all round trips were equal,
// clients with regular pauses would fall into step.
func uneven(chance *rand.Rand) time.Duration {
	return roundTrip*9/10 + time.Duration(chance.Int64N(int64(roundTrip/5)))
}

// longTailed returns round trips with the same mean. One in a hundred is several times as
// long as the others.
func longTailed(chance *rand.Rand) time.Duration {
	rare := time.Duration(0)
	if chance.IntN(100) == 0 {
		rare = time.Duration(chance.ExpFloat64() * float64(4*roundTrip))
	}
	return roundTrip*2/3 + time.Duration(chance.ExpFloat64()*float64(roundTrip)*.29) + rare
}

// distant delays each request by a round trip that far returns.
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

// In layouts without a queue every waiter polls. The bounds are a tenth above the recorded
// values, because results vary by chance. The case with fewer clients has more sections. So
// a result exceeds its bound by chance only once in many million runs.
func TestPollingCostPerGrantStaysWithinRecordedBounds(t *testing.T) {
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
					t.Errorf("%.2f %s for each section, %.2f are recorded", is.got, what, is.most)
				}
			}
		})
	}
}

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
			begin() // these four clients are never killed
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
