package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// The simulation runs several clients over the real SDK and the embedded
// engine, in a bubble of virtual time, on networks that lose, delay, repeat and
// refuse requests. Everything that is sent, applied and believed is held
// against the invariants of the protocol (checker_test.go).
//
//	LEASEHOLD_SEEDS=100000 go test -run TestSimulation .     more seeds
//	LEASEHOLD_SEED=4711 go test -run TestSimulation .        one seed again

const (
	simSeeds    = 1000
	recipeSeeds = 150 // of each recipe
)

func TestSimulation(t *testing.T) {
	forSeeds(t, simSeeds, func(t *testing.T, seed uint64) { simulate(t, seed, simPlan{}) })
}

func TestSimulationOfSharedLeases(t *testing.T) {
	forSeeds(t, simSeeds/4, func(t *testing.T, seed uint64) { simulate(t, seed, simPlan{shared: true}) })
}

// forSeeds runs a simulation for as many seeds as are asked for.
func forSeeds(t *testing.T, count uint64, run func(t *testing.T, seed uint64)) {
	first := uint64(1)
	if s := os.Getenv("LEASEHOLD_SEEDS"); s != "" {
		count = mustUint(t, s)
	} else if testing.Short() {
		count = max(count/20, 1)
	}
	if s := os.Getenv("LEASEHOLD_SEED"); s != "" {
		first, count = mustUint(t, s), 1
	}
	t.Logf("seeds %d to %d", first, first+count-1)
	workers := uint64(min(runtime.GOMAXPROCS(0), int(count)))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for seed := first + w; seed < first+count && !t.Failed(); seed += workers {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { run(t, seed) })
			}
		})
	}
	wg.Wait()
}

func mustUint(t *testing.T, s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// simPlan is what tests of the simulation itself change.
type simPlan struct {
	shared   bool            // clients renew one session for all their locks
	alone    bool            // no two goroutines of a client want several keys
	leases   []time.Duration // of the clients by their ids; none: all simLease
	net      troubles        // beside those that every network has
	believes bool            // beyond the lease, in an outage
	forgets  bool            // clients observe what they watch, and remember nothing else
	config   func(*leasehold.Config, *rand.Rand)
	work     func(*simClient, *worker)             // of each goroutine; nil: section
	beside   func(t *testing.T, s *sim, r *worker) // goes on beside the clients, until the network is mended
	tamper   func(*http.Request, []byte) []byte    // changes requests on their way
	report   func(problem string)                  // instead of failing the test
	told     func(history []string)                // is given what happened
}

const (
	simLease  = 4 * time.Second
	simMargin = simLease / 10
	simFaults = 10 * time.Second // while the network misbehaves

	lastClient = 99 // the id of the one that asks for every key in the end
)

// sim is one run.
type sim struct {
	*checker
	w    *lab.World
	seed uint64
	plan simPlan
	quit chan struct{} // closed when the network is mended

	clients []*simClient // set before the first of them does anything
}

// simClient is one process of a run.
type simClient struct {
	*sim
	id     int
	client *leasehold.Client
	clocks *simClocks
	rate   float64 // of its clocks
	lease  time.Duration
	owner  string // as its read/write locks name it; checker.mu guards it

	asked map[string]uint64 // requests, by what they ask; checker.mu guards it
	begun int               // commits; checker.mu guards it

	mu        sync.Mutex
	cutTil    time.Time // partitioned until then, or until the network is mended
	asleepTil time.Time
	outTil    time.Time // DynamoDB answers that it cannot
	dead      bool
}

// damaged is a record that nobody may be granted.
var damaged = map[string]types.AttributeValue{"key": lab.Str("damaged"), "ownerName": lab.Str("someone")}

func newSim(t *testing.T, seed uint64, plan simPlan) *sim {
	s := &sim{checker: newChecker(), w: lab.New(t).Work(), seed: seed, plan: plan, quit: make(chan struct{})}
	s.table, s.holdsOn = s.w, plan.believes
	s.w.Put(damaged)
	return s
}

func simulate(t *testing.T, seed uint64, plan simPlan) {
	name, _, _ := strings.Cut(t.Name(), "/")
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, seed, plan)
		rng := rand.New(rand.NewPCG(seed, 0))

		var clients []*simClient
		for id := range 2 + rng.IntN(2) {
			clients = append(clients, s.newClient(t, id, rng))
		}
		s.clients = clients
		var wg sync.WaitGroup
		for _, c := range clients {
			for i := range 1 + rng.IntN(2) {
				r := newWorker(seed, c.id, i)
				section := c.section
				if plan.work != nil {
					section = func(r *worker) { plan.work(c, r) }
				}
				wg.Go(func() { c.work(r, section) })
			}
		}
		if plan.beside != nil {
			wg.Go(func() { plan.beside(t, s, newWorker(seed, "beside")) })
		}
		time.Sleep(simFaults)
		close(s.quit)
		wg.Wait()
		time.Sleep(6 * time.Second) // what was delayed arrives

		closeAll := func() {
			for _, c := range clients {
				_ = c.client.Close(context.Background())
			}
		}
		if plan.shared {
			// What landed late under a session that lives on blocks others for
			// the hour that stands in the record: not without their client.
			closeAll()
		}
		s.checkLiveness(t, seed)
		closeAll()
		time.Sleep(20*time.Second + plan.net.copies) // late duplicates arrive
		s.finish()
		if got := s.w.Item("damaged"); len(got) != len(damaged) {
			s.violated("10: a damaged record was overwritten with %v", got)
		}
		s.report(t, seed, name)
	})
}

// report says what was found, and how to see it again.
func (s *sim) report(t *testing.T, seed uint64, test string) {
	names := ids{}
	if s.plan.told != nil {
		s.plan.told(s.history.lines(names))
	}
	problem := s.first()
	if problem == "" {
		return
	}
	if s.plan.report != nil {
		s.plan.report(problem)
		return
	}
	lines := s.history.lines(names)
	if os.Getenv("LEASEHOLD_SEED") != "" {
		t.Log(strings.Join(lines, "\n"))
	}
	t.Errorf("seed %d: %s\nagain: LEASEHOLD_SEED=%d go test -run '^%s$' .", seed, names.in(problem), seed, test)
}

func (s *sim) newClient(t *testing.T, id int, rng *rand.Rand) *simClient {
	c := &simClient{sim: s, id: id, asked: map[string]uint64{}}
	cfg := lab.Config()
	c.lease = simLease
	if n := len(s.plan.leases); n > 0 {
		c.lease = s.plan.leases[id%n]
	}
	s.longest = max(s.longest, c.lease)
	cfg.Lease, cfg.Margin, cfg.RenewEvery = c.lease, c.lease/10, c.lease/4
	cfg.PollMin, cfg.PollMax = 200*time.Millisecond, time.Second
	cfg.ReleaseGrace = time.Second
	cfg.LocalHandOver = 3
	cfg.SharedLease = s.plan.shared
	if cfg.SharedLease && id != lastClient && id%2 == 1 {
		cfg.PollMax = 2 * simLease // one that marks a session dead by what it read a lease ago
	}
	if cfg.DeleteOnRelease = id < operator && rng.IntN(4) == 0; cfg.DeleteOnRelease {
		s.deletes = true
	}
	if s.plan.config != nil {
		s.plan.config(&cfg, rng)
	}
	client, err := leasehold.New(s.w.Engine.Client(func(o *dynamodb.Options) { o.HTTPClient = c }), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.client = client
	if s.plan.forgets {
		leasehold.RememberAtMost(client, 0)
	}
	leasehold.SetChance(client, c.chance)
	// Clock rates within the margin, together: a tenth.
	c.rate = 1 + (rng.Float64()-0.5)*0.08
	c.clocks = &simClocks{rate: c.rate, began: time.Now()}
	leasehold.SetClocks(client, c.clocks.read)
	return c
}

var simKeys = []string{"a", "b"}

// work is one goroutine of a process: it goes through section after section
// until the network is mended, or its process dies.
func (c *simClient) work(r *worker, section func(*worker)) {
	c.rest(r, 20)
	for {
		select {
		case <-c.quit:
			return
		default:
		}
		if c.isDead() {
			return
		}
		switch p := r.IntN(100); {
		case p < 4:
			c.mu.Lock()
			c.cutTil = time.Now().Add(upTo(r, 8*time.Second))
			c.mu.Unlock()
		case p < 6:
			c.mu.Lock()
			c.dead = true
			c.mu.Unlock()
		case p < 8:
			c.clocks.jump(upTo(r, 6*time.Second))
		case p < 12 && !c.clocked:
			if _, err := c.client.TryAcquire(context.Background(), "damaged"); err == nil {
				c.violated("10: a damaged record was granted")
			}
		default:
			section(r)
		}
		c.rest(r, 1000)
	}
}

func (c *simClient) rest(r *worker, ms int) {
	time.Sleep(upTo(r, time.Duration(ms)*time.Millisecond))
}

func (c *simClient) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// section is one grant, from its asking to its end.
func (c *simClient) section(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	var opts []leasehold.AcquireOption
	if r.IntN(4) == 0 {
		opts = append(opts, leasehold.NoWait())
	}
	if r.IntN(5) == 0 && !c.plan.shared {
		opts = append(opts, leasehold.WithoutRenewal())
	}
	if r.IntN(6) == 0 {
		opts = append(opts, leasehold.WithAttributes(map[string]types.AttributeValue{"by": lab.Str(fmt.Sprint(c.id))}))
	}
	lock, err := c.client.Acquire(ctx, simKeys[r.IntN(len(simKeys))], opts...)
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
		if c.plan.shared && change == 2 { // cannot be detached
			change = 0
		}
		switch change {
		case 4, 5, 6:
			c.commit(r, lock, 6*time.Second)
		case 0:
			_ = lock.Renew(ctx, leasehold.WithData([]byte("x")))
		case 1:
			_ = lock.Renew(ctx, leasehold.WithLease(time.Second+upTo(r, 3*time.Second).Truncate(time.Millisecond)))
		case 2:
			if lock.Err() != nil {
				break
			}
			if g, err := lock.Detach(); err == nil {
				resumed, err := c.client.Resume(ctx, g)
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
		c.commit(r, lock, time.Second) // it may be left on its way
	}
	ctx, cancel = context.WithTimeout(r.ctx(), upTo(r, 4*time.Second))
	defer cancel()
	if r.IntN(4) == 0 {
		call, value := c.begin(lock)
		err = lock.CommitAndRelease(ctx, lab.Writes(lab.Note(lock.Key().Partition, value)))
		c.end(call, err)
	} else {
		err = lock.Release(ctx)
	}
	if err == nil {
		c.releasedForGood(lock)
	}
}

// stale is how old what a waiter knows of a session may be.
func (s *sim) stale() time.Duration {
	if s.plan.shared {
		return time.Second
	}
	return 0
}

// lastArrival is when faults have stopped for a key: from then on, unless a late
// copy of a request has changed its record since, or renewed a session.
func (s *sim) lastArrival(key string, from time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, at := range s.arrived {
		if (of == key || strings.HasPrefix(of, "session ")) && at.After(from) {
			from = at
		}
	}
	return from
}

// checkLiveness asks for every key once the faults have stopped: a free lock is
// taken within one longest poll, a dead holder's within its lease and a poll.
func (s *sim) checkLiveness(t *testing.T, seed uint64) {
	late := s.newClient(t, lastClient, rand.New(rand.NewPCG(seed, lastClient)))
	for _, key := range simKeys {
		// What a live process still holds is released by its own workers, which
		// have returned; what died, or was given up, ends with its lease.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		began := time.Now()
		lock, err := late.client.Acquire(ctx, key)
		cancel()
		took := time.Since(s.lastArrival(key, began))
		// The lease by the observer's clock, two longest polls, a round trip.
		if most := time.Duration(float64(s.longest)/late.rate) + 2*time.Second + 100*time.Millisecond + s.stale(); err != nil || took > most {
			s.violated("12: %s was granted after %v (at most %v): %v", key, took, most, err)
		}
		if err == nil {
			s.believes(late, lock)
			if err := lock.Release(context.Background()); err != nil && !errors.Is(err, leasehold.ErrLost) {
				s.violated("12: release with no fault: %v", err)
			}
		}
	}
	_ = late.client.Close(context.Background())
}
