package simulation

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// Clients acquire one of several keys, or all of them, and commit under several locks. Some clients
// acquire again a lock that they already hold, and some acquire only keys whose record exists. The
// test checks all promises of docs/guarantees.md.
func TestSimulationOfGroupsFindsNoViolation(t *testing.T) { forSeeds(t, worldSeeds, likewise(groups)) }

func groups(seed uint64) world {
	return world{shared: seed%3 == 0, work: (*process).sectionOfGroups}
}

func (c *process) sectionOfGroups(r *worker) {
	switch r.IntN(5) {
	case 0:
		c.oneOf(r)
	case 1, 2:
		c.allOf(r)
	case 3:
		c.twice(r)
	default:
		c.section(r)
	}
}

// oneOf acquires one of the keys, holds it for a while and releases it.
func (c *process) oneOf(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	keys := leasehold.Keys(keyNames...)
	if r.IntN(2) == 0 {
		keys[0], keys[1] = keys[1], keys[0]
	}
	asked, over := c.operation(ctx, "acquire any")
	lock, err := c.client.AcquireAny(asked, keys, c.manner(r)...)
	over()
	if err != nil {
		return
	}
	c.believes(c, lock)
	c.rest(r, 3000)
	c.commit(r, lock, 3*time.Second)
	c.releases(r, lock)
}

// allOf acquires all keys, holds them for a while and commits under all of them.
func (c *process) allOf(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	asked, over := c.operation(ctx, "acquire all")
	g, err := c.client.AcquireAll(asked, leasehold.Keys(keyNames...), c.manner(r)...)
	over()
	if err != nil {
		return
	}
	locks := g.Locks()
	for _, lock := range locks {
		c.believes(c, lock)
	}
	if c.isDead() {
		return
	}
	for range r.IntN(3) {
		c.rest(r, 3000)
		limited, cancel := context.WithTimeout(ctx, upTo(r, 6*time.Second))
		call, value := c.begin(locks[0])
		call.beside = locks[1:]
		c.end(call, g.Commit(c.asks(limited, "commit under several"), lab.Writes(lab.Note(call.key, value))))
		cancel()
		// A renewal may have waited for the commit, and then continues at the same instant as
		// this worker. Without this pause, the scheduler would decide which request is sent
		// first: the renewal, or the release below.
		time.Sleep(time.Microsecond)
	}
	// In a third of the calls, release one lock early. A commit that is still in flight must not be
	// applied after this release.
	if r.IntN(3) == 0 {
		c.releases(r, locks[len(locks)-1])
		c.rest(r, 8000)
	}
	ctx, cancel = context.WithTimeout(r.ctx(), upTo(r, 4*time.Second))
	defer cancel()
	if r.IntN(3) == 0 {
		call, value := c.begin(locks[0])
		err = g.CommitAndRelease(c.asks(ctx, "commit and release of several"), lab.Writes(lab.Note(call.key, value)))
		c.end(call, err)
	} else {
		err = g.Release(c.asks(ctx, "release of several"))
	}
	if err == nil {
		for _, lock := range locks {
			c.releasedForGood(lock)
		}
	}
}

// commitsAndReleases is the type of Group.CommitAndRelease, and of the broken variant
// commitThenRelease.
type commitsAndReleases func(*leasehold.Group, context.Context, []types.TransactWriteItem, ...leasehold.ReleaseOption) error

// The method "twice" acquires one of the two keys with Acquire. It then calls AcquireAll with the
// option Reentrant, for this key alone or for both keys. It ends the group with CommitAndRelease in
// half of the calls, and with Release in the others.
func (c *process) twice(r *worker) { c.twiceBy(r, (*leasehold.Group).CommitAndRelease) }

func (c *process) twiceBy(r *worker, both commitsAndReleases) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	key := keyNames[r.IntN(len(keyNames))]
	lock := c.acquires(ctx, "acquire", key, c.manner(r)...)
	if lock == nil {
		return
	}
	c.rest(r, 2000)
	keys := []string{key}
	if r.IntN(2) == 0 {
		keys = keyNames
	}
	inner, cancel := lock.Bind(ctx)
	defer cancel()
	asked, over := c.operation(inner, "acquire all")
	again, err := c.client.AcquireAll(asked, leasehold.Keys(keys...), leasehold.Reentrant())
	over()
	if err != nil {
		c.releases(r, lock)
		return
	}
	var beside []*leasehold.Lock
	for _, l := range again.Locks() {
		switch {
		case l.Key() != lock.Key():
			beside = append(beside, l)
			c.believes(c, l)
		case l.Token() != lock.Token():
			c.violated("of groups: process %d acquired its own lock again with token %d, not %d", c.id, l.Token(), lock.Token())
		}
	}
	trusted := lock.Err() == nil
	if r.IntN(2) == 0 {
		c.rest(r, 2000)
		call, value := c.begin(lock)
		call.beside = beside
		err = both(again, c.asks(ctx, "commit and release"), lab.Writes(lab.Note(key, value)))
		c.end(call, err)
		time.Sleep(time.Microsecond) // this pause has the same reason as the pause in allOf
	} else {
		err = again.Release(c.asks(ctx, "release of several"))
	}
	if err == nil && trusted && c.isReleased(lock) {
		c.violated("of groups: the release of the inner lock also released the outer lock of %v", lock.Key())
	}
	c.commit(r, lock, 3*time.Second)
	c.releases(r, lock)
}

// isReleased reports whether the record in the table shows that the holder has released
// the lock's grant.
func (c *process) isReleased(lock *leasehold.Lock) bool {
	c.checker.mu.Lock()
	defer c.checker.mu.Unlock()
	s := c.records[lock.Key().Partition]
	return s != nil && s.released && s.grant == lock.Record().Grant && s.token == lock.Token() && !c.broken[s.grant]
}

func (c *process) manner(r *worker) []leasehold.AcquireOption {
	var opts []leasehold.AcquireOption
	if r.IntN(4) == 0 {
		opts = append(opts, leasehold.NoWait())
	}
	if r.IntN(6) == 0 {
		opts = append(opts, leasehold.IfExists())
	}
	return opts
}

func (c *process) releases(r *worker, lock *leasehold.Lock) {
	if c.isDead() {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 4*time.Second))
	defer cancel()
	c.frees(ctx, lock)
}

// Processes detach grants, and other processes resume them. Sometimes two processes resume the
// same grant at the same time. The test checks all promises of docs/guarantees.md.
func TestSimulationOfDetachAndResumeFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(detaching))
}

func detaching(_ uint64) world {
	return world{work: (*process).sectionDetached}
}

// sectionDetached detaches a grant in a third of the cases, so that other processes resume it. In
// the others it calls the method section.
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
	lock := c.acquires(ctx, "acquire", keyNames[r.IntN(len(keyNames))])
	if lock == nil {
		return
	}
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
	c.frees(ctx, lock)
}
