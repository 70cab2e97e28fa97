package simulation

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
)

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
