package simulation

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

// Processes detach grants, and other processes resume them. Sometimes two processes
// resume the same grant at once. All promises hold.
func TestSimulationOfDetachAndResume(t *testing.T) { forSeeds(t, worldSeeds, likewise(detaching)) }

func detaching(_ uint64) world {
	return world{work: (*process).sectionDetached}
}

// sectionDetached runs section or, in a third of the calls, detaches a grant so
// that other processes resume it.
func (c *process) sectionDetached(r *worker) {
	if r.IntN(3) == 0 {
		c.passOn(r)
	} else {
		c.section(r)
	}
}

func (c *process) passOn(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	asked, over := c.operation(ctx, "acquire")
	lock, err := c.client.Acquire(asked, keyNames[r.IntN(len(keyNames))])
	over()
	if err != nil {
		return
	}
	c.believes(c, lock)
	c.rest(r, 2000)
	g, err := lock.Detach()
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	heirs := c.everybody()
	first := r.IntN(len(heirs))
	for i := range 1 + r.IntN(2) {
		heir := heirs[(first+i)%len(heirs)]
		theirs := newWorker(c.seed, r.name, "heir", i, g.Token)
		wg.Go(func() { heir.takeUp(theirs, g) })
	}
	wg.Wait()
}

// everybody returns the processes that run now.
func (s *run) everybody() []*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.clients)
}

// takeUp resumes a grant, does work under it and releases it.
func (c *process) takeUp(r *worker, g leasehold.Grant) {
	c.rest(r, 200)
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 8*time.Second))
	defer cancel()
	asked, over := c.operation(ctx, "resume")
	lock, err := c.client.Resume(asked, g)
	over()
	if err != nil || c.isDead() {
		return
	}
	c.believes(c, lock)
	c.rest(r, 3000)
	c.commit(r, lock, 3*time.Second)
	if lock.Release(c.asks(ctx, "release")) == nil {
		c.releasedForGood(lock)
	}
}
