package simulation

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// process is one process of a run.
type process struct {
	*run
	id        int
	client    *leasehold.Client
	clocks    *clocks
	rate      float64 // rate of its clocks; 1 is exact
	lease     time.Duration
	shared    bool          // its locks have a shared lease
	native    bool          // its layout is native
	wallBound time.Duration // bound of the error of its wall clock; 0 if there is none

	asked map[string]uint64     // number of requests, by their description; guarded by checker.mu
	own   map[string]*operation // the client's own operations, by their description; guarded by checker.mu
	begun int                   // number of commits; guarded by checker.mu

	accepted bool // DynamoDB has accepted its credentials; guarded by checker.mu

	mu        sync.Mutex
	cutTil    time.Time // end of its partition, unless the network is mended earlier
	asleepTil time.Time
	outTil    time.Time // end of the time in which DynamoDB answers that it is unavailable
	pausedTil time.Time
	drewAt    time.Time
	draws     map[string]int    // number of random numbers drawn at the instant drewAt, by purpose
	workers   map[string]string // the worker on whose behalf a goroutine works, by goroutine; empty if there is none
	lastAsked map[string]asking // last requests of each goroutine
	dead      bool
	closed    bool
}

func (s *run) newClient(id int, rng *rand.Rand) *process {
	c := &process{run: s, id: id, asked: map[string]uint64{}, own: map[string]*operation{}, workers: map[string]string{}, lastAsked: map[string]asking{}}
	cfg := lab.Config()
	c.lease = usualLease
	if n := len(s.plan.leases); n > 0 {
		c.lease = s.plan.leases[id%n]
	}
	s.mu.Lock()
	s.all = append(s.all, c)
	s.longest = max(s.longest, c.lease)
	s.mu.Unlock()
	cfg.Lease, cfg.Margin, cfg.RenewEvery = c.lease, c.lease/10, c.lease/4
	cfg.PollMax = time.Second
	cfg.ReleaseGrace = time.Second
	cfg.SharedLease = s.plan.shared
	if cfg.SharedLease && id != lastClient && id%2 == 1 {
		// A waiter uses a reading of a session for as long as PollMax. So it may mark the
		// session dead because of a reading that is twice as old as the usual lease.
		cfg.PollMax = 2 * usualLease
	}
	if cfg.DeleteOnRelease = id < operator && rng.IntN(4) == 0 && !s.plan.keeps; cfg.DeleteOnRelease {
		s.mu.Lock()
		s.deletes = true
		s.mu.Unlock()
	}
	if s.plan.config != nil {
		s.plan.config(&cfg, rng)
	}
	if cfg.DeleteOnRelease {
		cfg.Retention = 0 // the client deletes records on release, so it retains none
	}
	cfg.OnEvent = c.onEvent
	c.shared, c.native, c.wallBound = cfg.SharedLease, cfg.Layout == nil, cfg.MaxSkew
	// The margin is a tenth of the lease. The errors of two clock rates together stay
	// within it.
	c.rate = 1 + (rng.Float64()-0.5)*0.08
	c.clocks = &clocks{rate: c.rate, began: time.Now()}
	c.clocks.setWall(c.rightWall(drawn(c.seed, "wall", id)))
	on := []lab.Edit{lab.Clocks(func() (mono, boot time.Duration) {
		c.yield()
		return c.clocks.read()
	}), lab.Wall(func() time.Time {
		c.yield()
		return c.clocks.readWall()
	}), lab.Chance(c.chance)}
	if s.plan.forgets {
		on = append(on, lab.Memory(0))
	}
	c.client = s.w.ClientOf(s.w.Connect(on, func(o *dynamodb.Options) {
		o.HTTPClient = c
		if s.plan.net.credentials {
			o.Credentials = (*wallet)(c)
		}
	}), cfg)
	return c
}

var keyNames = []string{"a", "b"}

// work runs one section after the other on a goroutine of the process, until the network is
// mended or the process dies.
func (c *process) work(r *worker, section func(*worker)) {
	c.rest(r, 20)
	for c.goesOn() && !c.isDead() {
		switch p := r.IntN(100); {
		case p < 4:
			c.cutOff(r, 8*time.Second)
		case p < 6:
			c.crash(r)
		case p < 8:
			c.jump(r, 6*time.Second)
		case p < 12 && c.clocked:
			c.setWall(r)
		case p < 12:
			if _, err := c.client.TryAcquire(c.asks(context.Background(), "try"), "damaged"); err == nil {
				c.violated("10: a damaged record was granted")
			}
		default:
			section(r)
		}
		c.rest(r, 1000)
	}
}

// try returns the option with which the process tries to acquire a lock. Half of the
// processes use NoWait, which observes a holder that appears dead. The others use
// NoWaitEvenIfDead, which does not wait even then.
func (c *process) try() leasehold.AcquireOption {
	if c.id%2 == 0 {
		return leasehold.NoWait()
	}
	return leasehold.NoWaitEvenIfDead()
}

func (c *process) rest(r *worker, ms int) {
	time.Sleep(upTo(r, time.Duration(ms)*time.Millisecond))
	for d := c.isPaused(); d > 0; d = c.isPaused() {
		time.Sleep(d)
		time.Sleep(upTo(r, time.Millisecond)) // another pause, so that the goroutines of the process do not all continue at once
	}
}

// cutOff cuts the process off from the table for up to d.
func (c *process) cutOff(r *worker, d time.Duration) {
	d = upTo(r, d)
	if c.happens(partition, r.trouble()) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.cutTil = time.Now().Add(d)
	}
}

func (c *process) crash(r *worker) {
	if c.happens(crash, r.trouble()) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dead = true
	}
}

// jump suspends the machine for up to d. For the other processes the suspend takes no time.
func (c *process) jump(r *worker, d time.Duration) {
	d = upTo(r, d)
	if c.happens(bootJumps, r.trouble()) {
		c.clocks.jump(d)
	}
}

func (c *process) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead || c.closed
}
