package simulation

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
)

// Each world in this file differs from the usual world. If a promise of docs/guarantees.md does
// not hold in a world, the comment of the world's test says so. All other promises are checked.

// worldSeeds is the default number of seeds that run in each world; the
// environment variable LEASEHOLD_SEEDS overrides it.
const worldSeeds = 10

// likewise returns a simulation that runs each seed in the world that the given function
// returns for this seed.
func likewise(of func(seed uint64) world) simulation {
	return func(t *testing.T, seed uint64, w world) {
		simulate(t, seed, of(seed).watchedAs(w))
	}
}

// watchedAs returns w with some fields of "by" in place of its own. These fields limit the faults,
// change requests or replies, or observe the run.
func (w world) watchedAs(by world) world {
	w.tamper, w.misread, w.report, w.told, w.injected = by.tamper, by.misread, by.report, by.told, by.injected
	w.only, w.kinds, w.wrote = by.only, by.kinds, by.wrote
	return w
}

// The clients of one table have different leases. The network has more faults (type troubles): late
// copies, denials of access and, in some seeds, error replies without the item. The test checks all
// promises of docs/guarantees.md.
func TestSimulationOfUnusualNetworkFaultsFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(oddNetworks))
}

func oddNetworks(seed uint64) world {
	return world{
		leases: []time.Duration{2 * time.Second, usualLease, 7 * time.Second},
		net:    troubles{refusals: true, noOld: seed%2 == 0, copies: 3 * time.Minute}, forgets: seed%3 == 0,
	}
}

// DynamoDB throttles the writes of single keys, but accepts the writes of sessions and of
// other keys. The test checks all promises of docs/guarantees.md.
func TestSimulationOfThrottledKeysFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(failingKeys))
}

func failingKeys(seed uint64) world {
	return world{shared: seed%3 > 0, net: troubles{keys: true}}
}

// Machines are suspended for longer than a lease, and even for longer than DynamoDB remembers
// the idempotency token of a transaction. The test checks all promises of docs/guarantees.md.
func TestSimulationOfSuspendedMachinesFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(suspends))
}

func suspends(_ uint64) world {
	return world{work: (*process).sectionWithSuspends}
}

// sectionWithSuspends calls the method section. In a third of the cases it instead makes commits
// whose deadlines are up to an hour away. The machine may be suspended during these commits.
func (c *process) sectionWithSuspends(r *worker) {
	if r.IntN(3) > 0 {
		c.section(r)
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	lock := c.acquires(ctx, "acquire", keyNames[r.IntN(len(keyNames))])
	if lock == nil {
		return
	}
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
	c.frees(ctx, lock)
}

// suspend suspends the machine of a process for d. During this time the process sends and
// receives nothing, and its monotonic clock almost stops (see the type clocks).
func (c *process) suspend(d time.Duration) {
	c.mu.Lock()
	c.asleepTil = time.Now().Add(d)
	c.mu.Unlock()
	c.clocks.suspend(d)
}

// Clients are closed while their other goroutines wait for locks, hold them and commit. In two
// thirds of the seeds, the clients use shared leases. The network delivers copies of the
// clients' requests up to 20 s later. The test checks all promises of docs/guarantees.md.
func TestSimulationOfClientCloseFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(closing))
}

func closing(seed uint64) world {
	return world{
		shared: seed%3 > 0,
		net:    troubles{copies: 20 * time.Second},
		work:   (*process).sectionBeforeClose,
	}
}

// sectionBeforeClose closes the client in a quarter of the cases, and calls the method section in
// the others. Other goroutines of the client may still be running that method.
func (c *process) sectionBeforeClose(r *worker) {
	if r.IntN(4) > 0 {
		c.section(r)
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 3*time.Second))
	defer cancel()
	if r.IntN(4) > 0 {
		if lock := c.acquires(ctx, "acquire", keyNames[r.IntN(len(keyNames))]); lock != nil {
			c.commit(r, lock, time.Second) // this call may return while the commit is still in flight
		}
	}
	// The limit "most" is the sum of the longest time for which ctx lasts, the grace period of a
	// release, and 100 ms.
	began, most := time.Now(), 4*time.Second+100*time.Millisecond
	err := c.client.Close(c.asks(ctx, "close"))
	if took := time.Since(began); took > most {
		c.violated("12: Close of process %d took %v, its context %v at most: %v", c.id, took, most, err)
	}
	for _, lock := range c.client.Held() {
		c.violated("6: process %d is closed and holds %v", c.id, lock.Key())
	}
}

// During an outage, DynamoDB answers each request with a server error. Most clients keep their
// locks even after their leases have expired (AWSLabs.HoldThroughOutage). Promise 2 of
// docs/guarantees.md (the holder stops first) does not hold then, so the checker skips it. Fenced
// writes stay safe.
func TestSimulationOfOutagesFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(outages))
}

func outages(_ uint64) world {
	return world{
		config: func(cfg *leasehold.Config, rng *rand.Rand) {
			cfg.Layout = layout.AWSLabs{HoldThroughOutage: rng.IntN(3) > 0}
		},
		trustsPastLease: true,
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

// failFor starts an outage for one process: for up to d, DynamoDB answers each of its requests with
// a server error.
func (c *process) failFor(r *worker, d time.Duration) {
	d = upTo(r, d)
	if c.happens(outage, r.trouble()) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.outTil = time.Now().Add(d)
	}
}

func shortRetention(cfg *leasehold.Config, _ *rand.Rand) { cfg.Retention = time.Second }
