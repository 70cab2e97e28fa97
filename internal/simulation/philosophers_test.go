package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
)

// Twenty philosophers (processes) share twenty forks (keys). To eat, a philosopher acquires
// several forks together, in any order. In every seed, each philosopher that is alive when the
// faults stop must eat once more.

const (
	philosopherSeeds  = 15
	philosophers      = 20
	philosopherFaults = 5 * time.Second // time for which faults happen
)

func TestDiningPhilosophersNeverStarve(t *testing.T) {
	forSeeds(t, philosopherSeeds, simulatePhilosophers)
}

func simulatePhilosophers(t *testing.T, seed uint64, watched world) {
	dine(t, seed, watched, acquireAll)
}

// manners is the type of a function by which a philosopher acquires several keys.
type manners func(ctx context.Context, c *leasehold.Client, keys []leasehold.Key, opts ...leasehold.AcquireOption) ([]*leasehold.Lock, func(context.Context) error, error)

func acquireAll(ctx context.Context, c *leasehold.Client, keys []leasehold.Key, opts ...leasehold.AcquireOption) ([]*leasehold.Lock, func(context.Context) error, error) {
	g, err := c.AcquireAll(ctx, keys, opts...)
	if err != nil {
		return nil, nil, err
	}
	return g.Locks(), func(ctx context.Context) error { return g.Release(ctx) }, nil
}

type philosopher struct {
	*process
	take  manners
	alone bool // no other philosopher uses this philosopher's client
}

func dine(t *testing.T, seed uint64, plan world, take manners) {
	synctest.Test(t, func(t *testing.T) {
		s := newRun(t, seed, plan)
		rng := rand.New(rand.NewPCG(seed, 1))
		atOne := []int{1, 1, 4}[rng.IntN(3)] // number of philosophers that share one client
		var clients []*process
		for id := range philosophers / atOne {
			clients = append(clients, s.newClient(id, rng))
		}
		var wg sync.WaitGroup
		for i := range philosophers {
			p := &philosopher{process: clients[i/atOne], take: take, alone: atOne == 1}
			r := newWorker(seed, p.id, i)
			wg.Go(func() { p.dine(r) })
		}
		s.mend(philosopherFaults, &wg)
		s.closeAll()
		s.end(t)
	})
}

func (p *philosopher) dine(r *worker) {
	p.rest(r, 20)
	for p.goesOn() {
		switch n := r.IntN(100); {
		case p.isDead():
			return
		case n < 4:
			p.cutOff(r, 5*time.Second)
		case n < 6:
			p.crash(r)
		case n < 8:
			p.jump(r, 6*time.Second)
		case n < 16:
			p.snack(r)
		default:
			var opts []leasehold.AcquireOption
			if r.IntN(6) == 0 {
				opts = append(opts, leasehold.NoWait())
			}
			if r.IntN(6) == 0 {
				opts = append(opts, leasehold.WithoutRenewal())
			}
			_ = p.meal(r, upTo(r, 12*time.Second), opts...)
		}
		p.rest(r, 500)
	}
	if p.isDead() {
		return
	}
	const patience = time.Minute
	if err := p.meal(r, patience); err != nil {
		p.violated("12: process %d did not eat within %v of the faults' end: %v", p.id, patience, err)
	}
}

// forks returns some of the keys in random order.
func forks(r *worker) []leasehold.Key {
	var keys []leasehold.Key
	for _, i := range r.Perm(philosophers)[:1+r.IntN(5)] {
		keys = append(keys, leasehold.Key{Partition: fmt.Sprintf("fork-%02d", i)})
	}
	return keys
}

// meal acquires several keys, works under their locks and releases them. It returns an
// error if the keys were not granted.
func (p *philosopher) meal(r *worker, patience time.Duration, opts ...leasehold.AcquireOption) error {
	ctx, cancel := context.WithTimeout(r.ctx(), patience)
	defer cancel()
	keys := forks(r)
	asked, over := p.operation(ctx, "acquire all")
	locks, release, err := p.take(asked, p.client, keys, opts...)
	over()
	if err != nil {
		// An earlier call may have given up while its request for a key was in flight. If DynamoDB
		// applied that request, the client releases the key in the background. The pause lets the
		// client finish a release that it makes at this instant.
		time.Sleep(time.Nanosecond)
		if held := p.client.Held(); p.alone && len(held) > 0 {
			p.violated("13: process %d was refused %v and still holds %v: %v", p.id, keys, held[0].Key(), err)
		}
		return err
	}
	for i, lock := range locks {
		p.believes(p.process, lock)
		if lock.Key() != keys[i] {
			p.violated("13: process %d was granted %v for %v", p.id, lock.Key(), keys[i])
		}
	}
	if len(locks) != len(keys) {
		p.violated("13: process %d was granted %d of %v", p.id, len(locks), keys)
	}
	p.rest(r, 1500)
	if p.isDead() {
		return nil
	}
	ctx, cancel = context.WithTimeout(r.ctx(), upTo(r, 4*time.Second))
	defer cancel()
	if err := release(p.asks(ctx, "release of several")); err == nil {
		for _, lock := range locks {
			p.releasedForGood(lock)
		}
	}
	return nil
}

// snack acquires one of several keys, and then releases this key.
func (p *philosopher) snack(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 3*time.Second))
	defer cancel()
	asked, over := p.operation(ctx, "acquire any")
	lock, err := p.client.AcquireAny(asked, forks(r))
	over()
	if held := p.client.Held(); p.alone && (err != nil && len(held) > 0 || len(held) > 1) {
		p.violated("13: process %d asked for one key and holds %d: %v", p.id, len(held), err)
	}
	if err != nil {
		return
	}
	p.believes(p.process, lock)
	p.rest(r, 1000)
	if !p.isDead() && lock.Release(p.asks(ctx, "release")) == nil {
		p.releasedForGood(lock)
	}
}

// permits lists the keys of a semaphore. Each process is configured to use the
// first few of them, and the number differs between processes.
var permits = []leasehold.Key{{Partition: "s/0"}, {Partition: "s/1"}, {Partition: "s/2"}}

func TestSimulationOfSemaphoresFindsNoViolation(t *testing.T) {
	forSeeds(t, recipeSeeds, simulateSemaphores)
}

func simulateSemaphores(t *testing.T, seed uint64, watched world) {
	simulateSemaphore(t, seed, watched, acquirePermit)
}

// permitManners is the type of a function by which a process acquires one of several permits.
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
	// If a permit is granted at the instant at which the call is cancelled, another goroutine of
	// the client releases the permit immediately. This pause gives that goroutine time to do so.
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
	p.frees(ctx, lock)
}

// checkPermitsLiveness acquires every permit after the faults have stopped. Each permit must be
// granted within the sum of a lease, twice the longest pause between polls, and a round trip.
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
