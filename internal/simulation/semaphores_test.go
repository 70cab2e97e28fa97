package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
)

// permits lists the keys of a semaphore. Each process is configured to use the
// first few of them, and the number differs between processes.
var permits = []leasehold.Key{{Partition: "s/0"}, {Partition: "s/1"}, {Partition: "s/2"}}

func TestSimulationOfSemaphores(t *testing.T) {
	forSeeds(t, recipeSeeds, simulateSemaphores)
}

func simulateSemaphores(t *testing.T, seed uint64, watched world) {
	simulateSemaphore(t, seed, watched, acquirePermit)
}

// permitManners is the type of a function by which a process acquires one of
// several permits.
type permitManners func(ctx context.Context, c *leasehold.Client, keys []leasehold.Key, opts ...leasehold.AcquireOption) (*leasehold.Lock, error)

func acquirePermit(ctx context.Context, c *leasehold.Client, keys []leasehold.Key, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return c.AcquireAny(ctx, keys, opts...)
}

// sharer is a process that acquires permits of the semaphore.
type sharer struct {
	*process
	n     int // number of permits that this process is configured to use
	take  permitManners
	alone bool // the process has only one goroutine
}

func simulateSemaphore(t *testing.T, seed uint64, plan world, take permitManners) {
	synctest.Test(t, func(t *testing.T) {
		s := newRun(t, seed, plan)
		rng := rand.New(rand.NewPCG(seed, 2))
		var sharers []*sharer
		for id := range 2 + rng.IntN(3) {
			sharers = append(sharers, &sharer{process: s.newClient(id, rng), n: 1 + rng.IntN(len(permits)), take: take})
		}
		var wg sync.WaitGroup
		for _, p := range sharers {
			workers := 1 + rng.IntN(2)
			p.alone = workers == 1
			for i := range workers {
				r := newWorker(seed, p.id, i)
				wg.Go(func() { p.work(r, p.section) })
			}
		}
		s.mend(faultsLast, &wg)
		s.checkPermitsLiveness(seed)
		s.closeAll()
		s.end(t)
	})
}

// section acquires one permit, works under it and releases it.
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
	first := r.IntN(p.n)
	lock, err := p.take(asked, p.client, slices.Concat(permits[first:p.n], permits[:first]), opts...)
	over()
	// If a permit is granted at the instant at which the call gives up, another
	// goroutine of the client releases the permit at once. This pause gives it time
	// to do so.
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

// checkPermitsLiveness acquires every permit after the faults have stopped. Each permit
// must be granted within a lease, two longest polls and a round trip.
func (s *run) checkPermitsLiveness(seed uint64) {
	late := s.newClient(lastClient, rand.New(rand.NewPCG(seed, lastClient)))
	for i := range permits {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		began := time.Now()
		lock, err := late.client.AcquireAny(ctx, permits)
		cancel()
		if most := time.Duration(float64(usualLease)/late.rate) + 2*time.Second + 100*time.Millisecond; err != nil || time.Since(began) > most {
			s.violated("12: permit %d of %d was granted after %v (at most %v): %v", i+1, len(permits), time.Since(began), most, err)
		}
		if err == nil {
			s.believes(late, lock)
		}
	}
	for _, lock := range late.client.Held() {
		if err := lock.Release(late.asks(context.Background(), "release")); err != nil && !errors.Is(err, leasehold.ErrLost) {
			s.violated("12: release with no fault: %v", err)
		}
	}
	_ = late.client.Close(context.Background())
}
