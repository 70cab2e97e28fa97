package simulation

import (
	"context"
	"encoding/json"
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

// learn imports what another process has observed, as one of another host. Its
// clock differs by less than is declared.
func (c *process) learn(r *worker) {
	all := c.everybody()
	from := all[r.IntN(len(all))]
	var told []leasehold.Observation
	for _, o := range from.client.Observations() {
		told = append(told, ofAnotherHost(o))
	}
	for i := range told {
		told[i].Since = told[i].Since.Add(from.wallAhead() - c.wallAhead())
	}
	c.checker.mu.Lock()
	if c.seen[c.id] == nil {
		c.seen[c.id] = map[string]time.Time{}
	}
	for _, o := range told {
		first, ok := c.seen[from.id][o.Version]
		if mine, knows := c.seen[c.id][o.Version]; ok && (!knows || first.Before(mine)) {
			c.seen[c.id][o.Version] = first
			c.told[o.Version] = true
		}
	}
	c.checker.mu.Unlock()
	if err := c.client.ImportObservations(mostSkew, told...); err != nil {
		c.violated("0: process %d imports observations: %v", c.id, err)
	}
}

// mostSkew is the most by which the wall clocks of two processes differ.
const mostSkew = 100 * time.Millisecond

// wallAhead is by how much the process's wall clock is ahead.
func (c *process) wallAhead() time.Duration {
	return upTo(drawn(c.seed, "wall", c.id), mostSkew*9/10).Truncate(time.Millisecond)
}

func ofAnotherHost(o leasehold.Observation) leasehold.Observation {
	var fields map[string]any
	text, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	delete(fields, "boot")
	if err == nil {
		text, err = json.Marshal(fields)
	}
	var out leasehold.Observation
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}
