package simulation

import (
	"context"
	"testing"
	"time"
)

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
