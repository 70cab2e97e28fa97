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

// process is one simulated process of a run, with one client.
type process struct {
	*run
	id        int
	client    *leasehold.Client
	clocks    *clocks
	rate      float64 // rate of the process's clocks; 1 is exact
	lease     time.Duration
	shared    bool          // the client's locks are under a shared lease
	native    bool          // the client's layout is native
	wallBound time.Duration // bound for the error of the wall clock, as the client declares it; 0 if it declares none

	asked map[string]uint64     // number of requests so far, by their description; guarded by checker.mu
	own   map[string]*operation // operations that the client itself has started, by their description; guarded by checker.mu
	begun int                   // number of commits that have begun; guarded by checker.mu

	accepted bool // DynamoDB has accepted the process's credentials; guarded by checker.mu

	mu        sync.Mutex
	cutTil    time.Time         // time until which a partition cuts the process off; the partition ends earlier if the faults stop earlier
	asleepTil time.Time         // time until which the machine is suspended
	outTil    time.Time         // time until which DynamoDB answers the process's requests with a server error
	pausedTil time.Time         // time until which the process is paused
	drewAt    time.Time         // time of the last random number that the client drew
	draws     map[string]int    // number of random numbers drawn at the instant drewAt, by their purpose
	workers   map[string]string // worker for which a goroutine works, by goroutine id; empty if it works for none
	lastAsked map[string]asking // last requests of each goroutine, by goroutine id
	dead      bool              // the process has crashed
	closed    bool              // the process has begun to close its client
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
		// A waiter reuses its last read of a session's row for as long as PollMax. With this
		// PollMax, that read may be two usual leases old when the waiter marks the session dead.
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
		cfg.Retention = 0 // if a client deletes its records on release, retention has no effect and must be 0
	}
	cfg.OnEvent = c.onEvent
	c.shared, c.native, c.wallBound = cfg.SharedLease, cfg.Layout == nil, cfg.MaxSkew
	// The rate of each clock differs from 1 by at most 4 %. The margin is a tenth of the lease, so
	// it covers the errors of two clocks together.
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
		o.APIOptions = append(o.APIOptions, namesGoroutine)
		if s.plan.net.credentials {
			o.Credentials = (*wallet)(c)
		}
	}), cfg)
	return c
}

var keyNames = []string{"a", "b"}

// work calls the function section again and again on one goroutine of the process, and causes
// faults between the calls. It returns when the faults stop, or when the process dies.
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

// acquires acquires a key. It counts the call as the operation "what", and tells the checker that
// the process trusts the lock. It returns nil if the key was not granted.
func (c *process) acquires(ctx context.Context, what, key string, opts ...leasehold.AcquireOption) *leasehold.Lock {
	asked, over := c.operation(ctx, what)
	lock, err := c.client.Acquire(asked, key, opts...)
	over()
	if err != nil {
		return nil
	}
	c.believes(c, lock)
	return lock
}

// frees releases a lock, and tells the checker if the call succeeds.
func (c *process) frees(ctx context.Context, lock *leasehold.Lock) {
	if lock.Release(c.asks(ctx, "release")) == nil {
		c.releasedForGood(lock)
	}
}

// try returns the option for a call that does not wait for a live holder. In half of the processes
// it is NoWait, which still waits a lease if the holder appears dead. In the others it is
// NoWaitEvenIfDead.
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
		// This additional sleep makes the goroutines of a process continue at different times
		// after the process was paused.
		time.Sleep(upTo(r, time.Millisecond))
	}
}

// cutOff causes a partition: the process cannot reach the table for up to d.
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

// jump moves the process's boot clock ahead by up to d, as a suspend of the machine would.
// For the other processes, no time passes.
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
