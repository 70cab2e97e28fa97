package simulation

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

// Grants are laid down by one process and taken up by others, two at once, and
// processes tell each other what they have observed. Nothing is given up.
func TestSimulationOfPassingOn(t *testing.T) { forSeeds(t, worldSeeds, likewise(passingOn)) }

func passingOn(_ uint64) world {
	return world{work: (*process).sectionPassedOn}
}

// sectionPassedOn is a grant that others take up, section, or a look at what
// another process has observed.
func (c *process) sectionPassedOn(r *worker) {
	switch r.IntN(4) {
	case 0:
		c.learn(r)
	case 1:
		c.passOn(r)
	default:
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

// everybody is those who are there now.
func (s *run) everybody() []*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.clients)
}

func (s *run) anybody(r *worker) *process {
	all := s.everybody()
	return all[r.IntN(len(all))]
}

// takeUp resumes a grant, works under it and releases it.
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

// learn imports what another process has observed, as one of another host. It declares
// by how much their wall clocks differ.
func (c *process) learn(r *worker) {
	from := c.anybody(r)
	c.learnFrom(from, max(mostSkew, (from.clocks.wallAhead()-c.clocks.wallAhead()).Abs()+time.Millisecond))
}

func (c *process) learnFrom(from *process, declared time.Duration) {
	var told []leasehold.Observation
	for _, o := range from.client.Observations() {
		c.learns(c, from, o.Version)
		told = append(told, ofAnotherHost(o))
	}
	if err := c.client.ImportObservations(declared, told...); err != nil {
		c.violated("0: process %d imports observations: %v", c.id, err)
	}
}

// ofAnotherHost is an observation by a boot clock that is not known here.
func ofAnotherHost(o leasehold.Observation) leasehold.Observation {
	return leasehold.Observation{Key: o.Key, Version: o.Version, Lease: o.Lease, Since: o.Since}
}
