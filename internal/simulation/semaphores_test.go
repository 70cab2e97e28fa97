package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/semaphore"
)

const (
	permitsAtFirst = 2 // to begin with
	mostPermits    = 4
)

func TestSimulationOfSemaphores(t *testing.T) {
	forSeeds(t, recipeSeeds, simulateSemaphores)
}

func simulateSemaphores(t *testing.T, seed uint64, watched world) {
	simulateSemaphore(t, seed, watched, acquirePermit)
}

// permitManners are how a process takes a permit.
type permitManners func(ctx context.Context, c *leasehold.Client, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) (*leasehold.Lock, error)

func acquirePermit(ctx context.Context, _ *leasehold.Client, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return s.Acquire(ctx, opts...)
}

// sharer is a process that takes permits.
type sharer struct {
	*process
	semaphore *semaphore.Semaphore
	take      permitManners
	alone     bool // has one goroutine
}

func simulateSemaphore(t *testing.T, seed uint64, plan world, take permitManners) {
	synctest.Test(t, func(t *testing.T) {
		s := newRun(t, seed, plan)
		rng := rand.New(rand.NewPCG(seed, 2))
		var sharers []*sharer
		for id := range 2 + rng.IntN(3) {
			sharers = append(sharers, s.newSharer(t, s.newClient(id, rng), permitsAtFirst, take))
		}
		var wg sync.WaitGroup
		for _, p := range sharers {
			workers := 1 + rng.IntN(2)
			p.alone = workers == 1
			for i := range workers {
				r := newWorker(seed, p.id, i)
				wg.Go(func() { p.work(r, p.share) })
			}
		}
		time.Sleep(faultsLast)
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
		s.report(t, seed)
	})
}

func (s *run) newSharer(t *testing.T, c *process, n int, take permitManners) *sharer {
	sem, err := semaphore.New(c.client, "s", n)
	if err != nil {
		t.Fatal(err)
	}
	return &sharer{process: c, semaphore: sem, take: take}
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
	n, began := 1+r.IntN(mostPermits), time.Now()
	if p.semaphore.Resize(p.asks(ctx, "resize"), n) != nil {
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
	what, opts := "acquire", []leasehold.AcquireOption(nil)
	if r.IntN(4) == 0 {
		opts, what = append(opts, p.try()), "try"
	}
	if r.IntN(5) == 0 {
		opts = append(opts, leasehold.WithoutRenewal())
	}
	asked, over := p.operation(ctx, what+" a permit")
	lock, err := p.take(asked, p.client, p.semaphore, opts...)
	over()
	// What is granted at the very instant of the end of its wait is given back at
	// once, on another goroutine.
	time.Sleep(time.Microsecond)
	if held := len(p.client.Held()); p.alone && (err != nil && held > 0 || held > 1) {
		p.violated("13: process %d asked for one permit and holds %d: %v", p.id, held, err)
	}
	if err != nil {
		return
	}
	p.believes(p.process, lock)
	for range r.IntN(3) {
		p.rest(r, 2000)
		if r.IntN(3) == 0 {
			_ = lock.Renew(p.asks(ctx, "renew"), leasehold.WithData([]byte("x")))
		}
	}
	if p.isDead() {
		return
	}
	ctx, cancel = context.WithTimeout(r.ctx(), upTo(r, 4*time.Second))
	defer cancel()
	if lock.Release(p.asks(ctx, "release")) == nil {
		p.releasedForGood(lock)
	}
}

// checkPermitsLiveness asks for every permit once the faults have stopped: each
// is granted within a lease, two longest polls and a round trip.
func (s *run) checkPermitsLiveness(t *testing.T, seed uint64) {
	n, err := strconv.Atoi(lab.Number(s.w.Item("s"), "permits"))
	if err != nil {
		n = permitsAtFirst // nobody has come to store it
	}
	late := s.newSharer(t, s.newClient(lastClient, rand.New(rand.NewPCG(seed, lastClient))), n, acquirePermit)
	for i := range n {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		began := time.Now()
		lock, err := late.semaphore.Acquire(ctx)
		cancel()
		if most := time.Duration(float64(usualLease)/late.rate) + 2*time.Second + 100*time.Millisecond; err != nil || time.Since(began) > most {
			s.violated("12: permit %d of %d was granted after %v (at most %v): %v", i+1, n, time.Since(began), most, err)
		}
		if err == nil {
			s.believes(late.process, lock)
		}
	}
	for _, lock := range late.client.Held() {
		if err := lock.Release(late.asks(context.Background(), "release")); err != nil && !errors.Is(err, leasehold.ErrLost) {
			s.violated("12: release with no fault: %v", err)
		}
	}
	_ = late.client.Close(context.Background())
}
