package simulation

import (
	"context"
	"testing"
	"time"
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

// watchedAs returns a copy of w that has the hooks and the choice of faults of the other
// world, by.
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
