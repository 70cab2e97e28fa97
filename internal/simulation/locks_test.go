package simulation

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestSimulation(t *testing.T) {
	forSeeds(t, lockSeeds, simulate)
}

func TestSimulationOfSharedLeases(t *testing.T) {
	forSeeds(t, lockSeeds/4, likewise(sharedLeases))
}

func sharedLeases(_ uint64) world { return world{shared: true} }

// section acquires a lock, works under it, and then releases it or ends it in
// another way.
func (c *process) section(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	what, opts := "acquire", []leasehold.AcquireOption(nil)
	if r.IntN(4) == 0 {
		opts, what = append(opts, c.try()), "try"
	}
	if r.IntN(5) == 0 && !c.shared {
		opts = append(opts, leasehold.WithoutRenewal())
	}
	if r.IntN(6) == 0 {
		opts = append(opts, leasehold.WithAttributes(map[string]types.AttributeValue{"by": lab.Str(fmt.Sprint(c.id))}))
	}
	asked, over := c.operation(ctx, what)
	lock, err := c.client.Acquire(asked, keyNames[r.IntN(len(keyNames))], opts...)
	over()
	if err != nil {
		return
	}
	c.believes(c, lock)
	if c.isDead() {
		return
	}
	for range r.IntN(3) {
		c.rest(r, 3000)
		change := r.IntN(7)
		if c.shared && change == 2 { // the client refuses to detach a lock that is under a shared lease
			change = 0
		}
		switch change {
		case 4, 5, 6:
			c.commit(r, lock, 6*time.Second)
		case 0:
			_ = lock.Renew(c.asks(ctx, "renew"), leasehold.WithData([]byte("x")))
		case 1:
			_ = lock.Renew(c.asks(ctx, "renew"), leasehold.WithLease(time.Second+upTo(r, 3*time.Second).Truncate(time.Millisecond)))
		case 2:
			if lock.Err() != nil {
				break
			}
			if g, err := lock.Detach(); err == nil {
				asked, over := c.operation(ctx, "resume")
				resumed, err := c.client.Resume(asked, g)
				over()
				if err != nil {
					return
				}
				lock = resumed
				c.believes(c, lock)
			}
		}
	}
	if c.isDead() {
		return
	}
	if r.IntN(3) == 0 {
		c.commit(r, lock, time.Second) // this call may return while the commit is still in flight
	}
	ctx, cancel = context.WithTimeout(r.ctx(), upTo(r, 4*time.Second))
	defer cancel()
	if r.IntN(4) == 0 {
		call, value := c.begin(lock)
		err = lock.CommitAndRelease(c.asks(ctx, "commit and release"), lab.Writes(lab.Note(lock.Key().Partition, value)))
		c.end(call, err)
	} else {
		err = lock.Release(c.asks(ctx, "release"))
	}
	if err == nil {
		c.releasedForGood(lock)
	}
}
