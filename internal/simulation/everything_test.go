package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/layout"
)

// This world has locks, groups, a semaphore and an election on one table. In every third seed,
// about half of the clients use the Java client's layout, as during a move between layouts. The
// test checks all promises of docs/guarantees.md except those about broken and deleted locks.
func TestSimulationOfAllFeaturesTogetherFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, simulateEverything)
}

const (
	electionKey = "e"
	lifetimes   = 10 // a process's successor has the id of the process plus 10
)

func everything(seed uint64) world {
	return world{
		leases: []time.Duration{2 * time.Second, usualLease, 7 * time.Second},
		net:    troubles{refusals: true, noOld: seed%4 == 0, copies: 3 * time.Minute, credentials: true, table: true, pauses: true},
		shared: true,
		keeps:  seed%5 > 0,
		config: func(cfg *leasehold.Config, rng *rand.Rand) {
			shared, old := rng.IntN(3) == 0, rng.IntN(2) == 0
			moves := seed%3 == 0
			// If the layouts are mixed, no client uses a shared lease. With a shared lease, the lease
			// in the record of each lock is one hour. Clients with the Java client's layout do not
			// know sessions, so they would wait for that hour.
			cfg.SharedLease = shared && !moves
			cfg.Retention = time.Second
			if old && moves {
				cfg.Layout, cfg.Retention = layout.AWSLabs{}, 0
			}
		},
	}
}

func simulateEverything(t *testing.T, seed uint64, watched world) {
	synctest.Test(t, func(t *testing.T) {
		s := newRun(t, seed, everything(seed).watchedAs(watched))
		rng := rand.New(rand.NewPCG(seed, 6))
		var wg sync.WaitGroup
		for id := range 2 + rng.IntN(2) {
			s.clients = append(s.clients, s.newClient(id, drawn(seed, "life", id)))
		}
		for id := range s.clients {
			wg.Go(func() { s.live(id) })
		}
		if seed%2 == 0 {
			wg.Go(func() { breakLocks(t, s, newWorker(seed, "beside")) })
		}
		if !s.plan.keeps {
			wg.Go(func() { deleteRecords(t, s, newWorker(seed, "deletes")) })
		}
		s.mend(faultsLast, &wg)
		s.closeAll()
		s.checkLiveness(t, seed)
		s.end(t)
	})
}

// live runs a process until the faults stop. Whenever the process dies or is closed, live
// starts a new process in its place.
func (s *run) live(id int) {
	for life := 0; s.goesOn(); life++ {
		c := s.clients[id]
		r := newWorker(s.seed, "life", c.id)
		if life > 0 {
			if c.id+lifetimes >= operator {
				return
			}
			c.rest(r, 1000)
			c = s.newClient(c.id+lifetimes, r.Rand)
			s.mu.Lock()
			s.clients[id] = c
			s.mu.Unlock()
		}
		var wg sync.WaitGroup
		for i := range 1 + r.IntN(2) {
			theirs := newWorker(s.seed, c.id, i)
			wg.Go(func() { c.doEverything(theirs) })
		}
		wg.Wait()
	}
}

func (c *process) doEverything(r *worker) {
	c.rest(r, 20)
	for c.goesOn() && !c.isDead() {
		switch p := r.IntN(100); {
		case p < 4:
			c.cutOff(r, 8*time.Second)
		case p < 6:
			c.crash(r)
		case p < 8:
			c.jump(r, 6*time.Second)
		case p < 12:
			c.pause(r, 2*usualLease)
		case p < 14:
			if d := upTo(r, 8*time.Second); c.happens(suspend, r.trouble()) {
				c.suspend(d)
			}
		case p < 16:
			if _, err := c.client.TryAcquire(c.asks(r.ctx(), "try"), "damaged"); err == nil {
				c.violated("10: a damaged record was granted")
			}
		case p < 18:
			c.closes(r)
		case p < 21:
			c.setWall(r)
		default:
			c.sectionOfEverything(r)
		}
		c.rest(r, 600)
	}
}

// closes closes the process's client, and checks that the client then holds no lock.
func (c *process) closes(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 3*time.Second))
	defer cancel()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	_ = c.client.Close(c.asks(ctx, "close"))
	for _, lock := range c.client.Held() {
		c.violated("6: process %d is closed and holds %v", c.id, lock.Key())
	}
}

func (c *process) sectionOfEverything(r *worker) {
	switch r.IntN(9) {
	case 0, 1:
		c.sectionOfGroups(r)
	case 2, 3:
		(&sharer{process: c, n: len(permits), take: acquirePermit}).section(r)
	case 4:
		c.campaigns(r)
	case 5:
		if c.native && !c.shared {
			c.passOn(r)
		}
	case 6:
		c.putsDown(r)
	default:
		c.section(r)
	}
}

// putsDown acquires a lock, holds it for a while, and releases it. It chooses at random whether
// the release stores data, keeps the record, or deletes the record if the world allows this.
func (c *process) putsDown(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	lock := c.acquires(ctx, "acquire", keyNames[r.IntN(len(keyNames))])
	if lock == nil {
		return
	}
	c.rest(r, 2000)
	if c.isDead() {
		return
	}
	what, how := "release with data", leasehold.ReleaseOption(leasehold.WithData([]byte(r.name)))
	switch r.IntN(3) {
	case 0:
		what, how = "release, kept", leasehold.DeleteOnRelease(false)
	case 1:
		if !c.plan.keeps {
			what, how = "release, deleted", leasehold.DeleteOnRelease(true)
		}
	}
	if lock.Release(c.asks(ctx, what), how) == nil {
		c.releasedForGood(lock)
	}
}

// campaigns campaigns once in the election. If the process is elected, it leads for a while.
func (c *process) campaigns(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 8*time.Second))
	defer cancel()
	e, err := election.New(c.client, electionKey)
	if err != nil {
		c.violated("0: %v", err)
		return
	}
	asked, over := c.operation(ctx, "campaign")
	term, err := e.Campaign(asked, "of "+fmt.Sprint(c.id))
	over()
	if err != nil {
		return
	}
	c.believes(c, term)
	for range 1 + r.IntN(2) {
		c.rest(r, 2000)
		c.commit(r, term, 3*time.Second)
	}
	c.releases(r, term)
}

// pause pauses the process for up to d. During the pause the process sends nothing, receives
// nothing and takes no step that other processes could notice. A request that the process has
// begun to send is sent after the pause.
func (c *process) pause(r *worker, d time.Duration) {
	d = upTo(r, d)
	if c.happens(pause, r.trouble()) {
		c.standStill(d)
	}
}

func (c *process) standStill(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pausedTil = time.Now().Add(d)
}

// isPaused returns how long the process will still be paused. If the process is not paused, the
// result is zero or negative.
func (c *process) isPaused() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.pausedTil)
}
