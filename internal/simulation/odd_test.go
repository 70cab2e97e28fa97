package simulation

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
)

// Each of these worlds is odd in one way. If an oddity gives up a promise, its world says
// so. All other promises are still checked.

// worldSeeds is the default number of seeds of each world; LEASEHOLD_SEEDS raises it.
const worldSeeds = 10

// likewise returns a simulation whose world may differ from seed to seed.
func likewise(of func(seed uint64) world) simulation {
	return func(t *testing.T, seed uint64, w world) {
		simulate(t, seed, of(seed).watchedAs(w))
	}
}

// watchedAs returns a copy of w with the hooks and the choice of faults of the world by.
func (w world) watchedAs(by world) world {
	w.tamper, w.misread, w.report, w.told, w.injected = by.tamper, by.misread, by.report, by.told, by.injected
	w.only, w.kinds, w.wrote = by.only, by.kinds, by.wrote
	return w
}

// Clients of one table have different configurations. Their network repeats requests
// minutes later, and denies some requests, even some that were applied. The engine may omit
// the item of a failed condition. Some clients have a full memory, with room only for the
// keys that they are observing. All promises hold.
func TestSimulationOfUnusualNetworkFaults(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(oddNetworks))
}

func oddNetworks(seed uint64) world {
	return world{
		leases: []time.Duration{2 * time.Second, usualLease, 7 * time.Second},
		net:    troubles{refusals: true, noOld: seed%2 == 0, copies: 3 * time.Minute}, forgets: seed%3 == 0,
	}
}

// The writes of single keys are throttled, while the writes of sessions and of other keys
// get through. All promises hold.
func TestSimulationOfRequestsThatFailForOneKey(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(failingKeys))
}

func failingKeys(seed uint64) world {
	return world{shared: seed%3 > 0, net: troubles{keys: true}}
}

// Machines are suspended for longer than a lease, and for longer than DynamoDB remembers
// the token of a transaction. All promises hold.
func TestSimulationOfSuspends(t *testing.T) { forSeeds(t, worldSeeds, likewise(suspends)) }

func suspends(_ uint64) world {
	return world{work: (*process).sectionWithSuspends}
}

// sectionWithSuspends runs section, or a commit by a very patient caller, on a machine that
// may be suspended meanwhile.
func (c *process) sectionWithSuspends(r *worker) {
	if r.IntN(3) > 0 {
		c.section(r)
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	asked, over := c.operation(ctx, "acquire")
	lock, err := c.client.Acquire(asked, keyNames[r.IntN(len(keyNames))])
	over()
	if err != nil {
		return
	}
	c.believes(c, lock)
	asleep := upTo(r, 10*time.Second)
	if r.IntN(2) == 0 {
		asleep = 10*time.Minute + upTo(r, 10*time.Minute)
	}
	if in, to := upTo(r, time.Second), r.trouble(); c.happens(suspend, to) {
		time.AfterFunc(in, func() { c.suspend(asleep) })
	}
	for range 1 + r.IntN(3) {
		c.commit(r, lock, time.Hour)
	}
	if lock.Release(c.asks(ctx, "release")) == nil {
		c.releasedForGood(lock)
	}
}

// suspend suspends the machine of a process for d. During that time the process sends and
// receives nothing, and one of its clocks almost stops.
func (c *process) suspend(d time.Duration) {
	c.mu.Lock()
	c.asleepTil = time.Now().Add(d)
	c.mu.Unlock()
	c.clocks.suspend(d)
}

// Clients with shared leases are closed while their other goroutines wait, hold and commit.
// Late copies of their requests arrive afterwards. All promises hold.
func TestSimulationOfClientClose(t *testing.T) { forSeeds(t, worldSeeds, likewise(closing)) }

func closing(seed uint64) world {
	return world{
		shared: seed%3 > 0,
		net:    troubles{copies: 20 * time.Second},
		work:   (*process).sectionBeforeClose,
	}
}

// sectionBeforeClose runs section, or closes the client while other goroutines may be in
// section.
func (c *process) sectionBeforeClose(r *worker) {
	if r.IntN(4) > 0 {
		c.section(r)
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 3*time.Second))
	defer cancel()
	if r.IntN(4) > 0 {
		asked, over := c.operation(ctx, "acquire")
		lock, err := c.client.Acquire(asked, keyNames[r.IntN(len(keyNames))])
		over()
		if err == nil {
			c.believes(c, lock)
			c.commit(r, lock, time.Second) // the commit may still be in flight after this call
		}
	}
	began, most := time.Now(), 4*time.Second+100*time.Millisecond // most is the longest context, plus the release grace
	err := c.client.Close(c.asks(ctx, "close"))
	if took := time.Since(began); took > most {
		c.violated("12: Close of process %d took %v, its context %v at most: %v", c.id, took, most, err)
	}
	for _, lock := range c.client.Held() {
		c.violated("6: process %d is closed and holds %v", c.id, lock.Key())
	}
}

// Clients keep their locks through outages. This gives up promise 2 while DynamoDB answers
// that it is unavailable, so trust is not checked against leases. Fenced writes stay safe.
func TestSimulationOfOutages(t *testing.T) { forSeeds(t, worldSeeds, likewise(outages)) }

func outages(_ uint64) world {
	return world{
		config: func(cfg *leasehold.Config, rng *rand.Rand) {
			cfg.Layout = layout.AWSLabs{HoldThroughOutage: rng.IntN(3) > 0}
		},
		believes: true,
		beside: func(_ *testing.T, s *run, r *worker) {
			for s.goesOn() {
				time.Sleep(upTo(r, 4*time.Second))
				for _, c := range s.clients {
					if r.IntN(3) > 0 {
						c.failFor(r, 2*usualLease)
					}
				}
			}
		},
	}
}

// failFor makes DynamoDB answer the process that it is unavailable, for up to d.
func (c *process) failFor(r *worker, d time.Duration) {
	d = upTo(r, d)
	if c.happens(outage, r.trouble()) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.outTil = time.Now().Add(d)
	}
}

func shortRetention(cfg *leasehold.Config, _ *rand.Rand) { cfg.Retention = time.Second }
