package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/semaphore"
)

// Processes share a semaphore and resize it, on the network of the simulation
// (sim_test.go).
//
//	LEASEHOLD_SEEDS=2000 go test -run TestSimulationOfSemaphores .     more seeds
//	LEASEHOLD_SEED=4711 go test -run TestSimulationOfSemaphores .      one seed again

const (
	simPermits     = 2 // to begin with
	mostSimPermits = 4
)

func TestSimulationOfSemaphores(t *testing.T) {
	forSeeds(t, recipeSeeds, func(t *testing.T, seed uint64) { simulateSemaphore(t, seed, simPlan{}, acquirePermit) })
}

// permitManners are how a process takes a permit.
type permitManners func(ctx context.Context, c *leasehold.Client, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) (*leasehold.Lock, error)

func acquirePermit(ctx context.Context, _ *leasehold.Client, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return s.Acquire(ctx, opts...)
}

// permitLog is what the table has said of the semaphore, and when. checker.mu
// guards it.
type permitLog struct {
	resizes []resize
	grants  map[string]time.Time // by id: first installed
}

// resize is n from then on.
type resize struct {
	at time.Time
	n  int
}

func (l *permitLog) installed(grant string) {
	if l.grants == nil {
		l.grants = map[string]time.Time{}
	}
	if l.grants[grant].IsZero() {
		l.grants[grant] = time.Now()
	}
}

// mostBetween is the greatest n that was in force at some time of those.
func (l *permitLog) mostBetween(from, to time.Time) int {
	most := 0
	for i, r := range l.resizes {
		ends := i+1 < len(l.resizes) && l.resizes[i+1].at.Before(from)
		if !r.at.After(to) && !ends {
			most = max(most, r.n)
		}
	}
	return most
}

// resized enters the new state of the semaphore's row.
func (c *checker) resized(r *request, now *state, item attributeMap) {
	n := int(item.number("permits"))
	c.applies(r, "semaphore", fmt.Sprintf("%d permits, at most %d ever", n, item.number("most")))
	c.permits.resizes = append(c.permits.resizes, resize{time.Now(), n})
	if now.version == "" || now.owner == "" || now.lease <= 0 {
		c.note("10: the row of a semaphore lacks an attribute of the Java client: %v", item)
	}
	if c.versions[now.version] {
		c.note("2: version %s of a semaphore came back", now.version)
	}
	c.versions[now.version] = true
	for _, r := range c.permits.resizes {
		if int64(r.n) > item.number("most") {
			c.note("14: there were %d permits, and the row says %d at most", r.n, item.number("most"))
		}
	}
}

// checkPermits holds the beliefs against what the table said of the semaphore:
// whoever believes to have a permit was granted one of those that there were
// when it was granted, or was told that it had it. As permits of one number
// exclude each other, there are never more than there were since the oldest of
// them was granted.
func (c *checker) checkPermits() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.beliefs {
		granted := c.permits.grants[b.grant]
		if most := c.permits.mostBetween(granted, b.began); permitOf(b) >= most {
			c.note("14: process %d believes in permit %d, granted at %v and told at %v, of %d", b.by.id, permitOf(b),
				granted.Sub(c.began), b.began.Sub(c.began), most)
		}
		oldest, n := granted, 0
		for _, o := range c.beliefs {
			if !o.began.After(b.began) && o.end.After(b.began) {
				n++
				if at := c.permits.grants[o.grant]; at.Before(oldest) {
					oldest = at
				}
			}
		}
		if most := c.permits.mostBetween(oldest, b.began); n > most {
			c.note("14: %d permits were believed in at %v, of %d", n, b.began.Sub(c.began), most)
		}
	}
}

func permitOf(b *belief) int {
	_, number, _ := strings.Cut(b.lock.Key().Partition, "/")
	i, err := strconv.Atoi(number)
	if err != nil {
		return mostSimPermits
	}
	return i
}

// sharer is a process that takes permits.
type sharer struct {
	*simClient
	semaphore *semaphore.Semaphore
	take      permitManners
	alone     bool // has one goroutine
}

func simulateSemaphore(t *testing.T, seed uint64, plan simPlan, take permitManners) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, seed, plan)
		rng := rand.New(rand.NewPCG(seed, 2))
		var sharers []*sharer
		for id := range 2 + rng.IntN(3) {
			sharers = append(sharers, s.newSharer(t, s.newClient(t, id, rng), simPermits, take))
		}
		var wg sync.WaitGroup
		for _, p := range sharers {
			workers := 1 + rng.IntN(2)
			if plan.alone {
				workers = 1
			}
			p.alone = workers == 1
			for i := range workers {
				r := newWorker(seed, p.id, i)
				wg.Go(func() { p.work(r, p.share) })
			}
		}
		time.Sleep(simFaults)
		close(s.quit)
		wg.Wait()
		time.Sleep(6 * time.Second) // what was delayed arrives
		s.checkPermitsLiveness(t, seed)
		for _, p := range sharers {
			_ = p.client.Close(context.Background())
		}
		time.Sleep(20 * time.Second) // late duplicates arrive
		s.finish()
		s.checkPermits()
		s.report(t, seed, "TestSimulationOfSemaphores")
	})
}

func (s *sim) newSharer(t *testing.T, c *simClient, n int, take permitManners) *sharer {
	sem, err := semaphore.New(c.client, "s", n)
	if err != nil {
		t.Fatal(err)
	}
	return &sharer{simClient: c, semaphore: sem, take: take}
}

// share is one permit, from its asking to its end, or now and then a Resize.
func (p *sharer) share(r *worker) {
	if r.IntN(8) == 0 {
		p.resize(r)
		return
	}
	p.section(r)
}

// resize stores another n. One that returned nil was in force meanwhile.
func (p *sharer) resize(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 5*time.Second))
	defer cancel()
	n, began := 1+r.IntN(mostSimPermits), time.Now()
	if p.semaphore.Resize(ctx, n) != nil {
		return
	}
	now := time.Now()
	p.checker.mu.Lock()
	defer p.checker.mu.Unlock()
	inForce := false
	for i, r := range p.permits.resizes {
		over := i+1 < len(p.permits.resizes) && p.permits.resizes[i+1].at.Before(began)
		inForce = inForce || r.n == n && !r.at.After(now) && !over
	}
	if !inForce {
		p.note("8: a Resize to %d returned nil, and it was never in force", n)
	}
}

// section is one permit, from its asking to its end.
func (p *sharer) section(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	var opts []leasehold.AcquireOption
	if r.IntN(4) == 0 {
		opts = append(opts, leasehold.NoWait())
	}
	if r.IntN(5) == 0 {
		opts = append(opts, leasehold.WithoutRenewal())
	}
	lock, err := p.take(ctx, p.client, p.semaphore, opts...)
	// What is granted at the very instant of the end of its wait is given back at
	// once, on another goroutine.
	time.Sleep(time.Microsecond)
	if held := len(p.client.Held()); p.alone && (err != nil && held > 0 || held > 1) {
		p.violated("13: process %d asked for one permit and holds %d: %v", p.id, held, err)
	}
	if err != nil {
		return
	}
	p.believes(p.simClient, lock)
	for range r.IntN(3) {
		p.rest(r, 2000)
		if r.IntN(3) == 0 {
			_ = lock.Renew(ctx, leasehold.WithData([]byte("x")))
		}
	}
	if p.isDead() {
		return
	}
	ctx, cancel = context.WithTimeout(r.ctx(), upTo(r, 4*time.Second))
	defer cancel()
	if lock.Release(ctx) == nil {
		p.releasedForGood(lock)
	}
}

// checkPermitsLiveness asks for every permit once the faults have stopped: each
// is granted within a lease, two longest polls and a round trip.
func (s *sim) checkPermitsLiveness(t *testing.T, seed uint64) {
	n, err := strconv.Atoi(numberOf(s.w.Item("s"), "permits"))
	if err != nil {
		n = simPermits // nobody has come to store it
	}
	late := s.newSharer(t, s.newClient(t, lastClient, rand.New(rand.NewPCG(seed, lastClient))), n, acquirePermit)
	for i := range n {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		began := time.Now()
		lock, err := late.semaphore.Acquire(ctx)
		cancel()
		if most := time.Duration(float64(simLease)/late.rate) + 2*time.Second + 100*time.Millisecond; err != nil || time.Since(began) > most {
			s.violated("12: permit %d of %d was granted after %v (at most %v): %v", i+1, n, time.Since(began), most, err)
		}
		if err == nil {
			s.believes(late.simClient, lock)
		}
	}
	for _, lock := range late.client.Held() {
		if err := lock.Release(context.Background()); err != nil && !errors.Is(err, leasehold.ErrLost) {
			s.violated("12: release with no fault: %v", err)
		}
	}
	_ = late.client.Close(context.Background())
}

// Each of these is caught by the simulation: what would not be found by it is
// not tested by it.
func TestSemaphoresOfBadMannersAreFound(t *testing.T) {
	permits := func(n int) []leasehold.Key {
		var keys []leasehold.Key
		for i := range n {
			keys = append(keys, leasehold.Key{Partition: fmt.Sprint("s/", i)})
		}
		return keys
	}
	for _, tc := range []struct {
		name, found string
		take        permitManners
	}{
		{"a permit that nobody has confirmed", "14", func(ctx context.Context, c *leasehold.Client, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
			_, _ = s.Acquire(ctx, leasehold.NoWait(), leasehold.WithLease(0)) // refused, but it has agreed
			return c.AcquireAny(ctx, permits(simPermits), opts...)
		}},
		{"permits that nobody has counted", "14", func(ctx context.Context, c *leasehold.Client, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
			_, _ = s.Acquire(ctx, leasehold.NoWait(), leasehold.WithLease(0))
			return c.AcquireAny(ctx, permits(mostSimPermits), opts...)
		}},
		{"two for one", "13", func(ctx context.Context, c *leasehold.Client, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
			if _, err := s.Acquire(ctx, opts...); err != nil {
				return nil, err
			}
			return s.Acquire(ctx, opts...)
		}},
		{"a permit that is forgotten", "12", func(ctx context.Context, c *leasehold.Client, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
			if _, err := s.Acquire(ctx, leasehold.NoWait()); err != nil {
				return nil, err
			}
			return nil, errors.New("forgotten")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := ""
			for seed := uint64(1); seed <= 200 && found == ""; seed++ {
				simulateSemaphore(t, seed, simPlan{report: func(problem string) {
					if strings.HasPrefix(problem, "invariant "+tc.found+":") {
						found = fmt.Sprintf("seed %d: %s", seed, problem)
					}
				}}, tc.take)
			}
			if found == "" {
				t.Errorf("no violation of invariant %s in 200 seeds", tc.found)
			}
			t.Log(found)
		})
	}
}
