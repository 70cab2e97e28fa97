package simulation

import (
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// world is the configuration of a simulation. The zero value is the usual world.
type world struct {
	shared          bool                                     // clients use shared leases; the function config may change this for some
	keeps           bool                                     // no client deletes its records on release
	leases          []time.Duration                          // leases that the clients use in turn, by client id; empty for usualLease
	net             troubles                                 // faults that happen in addition to those of every network
	skew            time.Duration                            // largest difference between two wall clocks, for layouts with an expiry time
	wall            func(*process, *rand.Rand) time.Duration // returns how far a wall clock is ahead; nil to use skew or a small default
	refusalsAlone   bool                                     // the only faults are refusals by AWS, each for a while
	trustsPastLease bool                                     // clients may trust a lock for longer than its lease during an outage
	noticedWithin   time.Duration                            // time within which holders learn of a break after the faults have stopped; 0 if no time is promised
	forgets         bool                                     // clients remember only the keys that they are observing
	config          func(*leasehold.Config, *rand.Rand)
	work            func(*process, *worker)               // the work of each goroutine; nil for process.section
	beside          func(t *testing.T, s *run, r *worker) // runs at the same time as the clients' work, until the faults have stopped
	tamper          func(*http.Request, []byte) []byte    // changes requests in flight
	yields          bool                                  // goroutines yield at random, so that they run in another order
	misread         func([]byte) []byte                   // changes replies in flight
	report          func(problem string)                  // called with the first violation of a run; if it is set, a violation does not fail the test
	told            func(history []string)                // receives the lines of the history at the end of the run
	wrote           func(key string, lines []string)      // receives the history of each key, for a check against the models of proof/spec
	injected        func([]injected)                      // receives the faults that happened
	only            []string                              // ids of the only faults that happen; nil for all faults
	kinds           []fault                               // kinds of the only faults that happen; nil for all kinds
}

const (
	usualLease  = 4 * time.Second
	usualMargin = usualLease / 10
	faultsLast  = 10 * time.Second // time for which faults happen in a run

	lastClient = 99 // id of the client that acquires every key at the end of a run
)

// run is one run of a seed in a world.
type run struct {
	*checker
	w    *lab.World
	seed uint64
	plan world
	quit chan struct{} // closed when the faults stop

	clients []*process // set before any process starts, except in the world everything, where mu guards it
	all     []*process // all processes that have run so far; guarded by mu
}

// damaged is an invalid record, so no client may be granted its key.
var damaged = map[string]types.AttributeValue{"key": lab.Str("damaged"), "ownerName": lab.Str("someone")}

func newRun(t *testing.T, seed uint64, plan world) *run {
	s := &run{checker: newChecker(), w: lab.New(t).Work(), seed: seed, plan: plan, quit: make(chan struct{})}
	s.table, s.trustsPastLease, s.noticedWithin = s.w, plan.trustsPastLease, plan.noticedWithin
	if plan.wrote != nil {
		s.writes = newWrites()
	}
	s.w.Put(damaged)
	return s
}

func simulate(t *testing.T, seed uint64, plan world) {
	synctest.Test(t, func(t *testing.T) {
		s := newRun(t, seed, plan)
		rng := rand.New(rand.NewPCG(seed, 0))

		var clients []*process
		for id := range 2 + rng.IntN(2) {
			clients = append(clients, s.newClient(id, rng))
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
		s.mend(faultsLast, &wg)
		if plan.shared {
			// A late copy of a grant's request may have written a record with a lease of one hour.
			// This record blocks other clients as long as the grant's session is live. closeAll
			// ends the sessions.
			s.closeAll()
		}
		s.checkLiveness(t, seed)
		s.closeAll()
		s.end(t)
	})
}

// mend stops the faults after the given time. It then waits for the workers and for
// delayed requests.
func (s *run) mend(after time.Duration, workers *sync.WaitGroup) {
	time.Sleep(after)
	close(s.quit)
	workers.Wait()
	time.Sleep(6 * time.Second)
}

// closeAll closes the client of every process of the run.
func (s *run) closeAll() {
	for _, c := range s.all {
		_ = c.client.Close(context.Background())
	}
}

// end waits until the network has delivered the last copies of requests. Then it makes the
// final checks and reports the result of the run.
func (s *run) end(t *testing.T) {
	time.Sleep(20*time.Second + s.plan.net.copies)
	s.finish()
	if got := s.w.Item("damaged"); len(got) != len(damaged) {
		s.violated("10: a damaged record was overwritten with %v", got)
	}
	s.report(t, s.seed)
}

// report prints the first violation of a run, and the command that runs its seed again.
func (s *run) report(t *testing.T, seed uint64) {
	names := ids{}
	test := testNameOf(t)
	if s.plan.report == nil && s.plan.told == nil {
		s.tally.enter(test, seed, s.first() != "")
	}
	if s.plan.injected != nil {
		s.plan.injected(s.faults)
	}
	if s.plan.wrote != nil {
		for _, key := range keyNames {
			s.plan.wrote(key, s.writes.lines[key])
		}
	}
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
	t.Errorf("seed %d: %s\nagain: %s\nwith the fewest faults: LEASEHOLD_SHRINK=1 %s", seed, names.in(problem), again(seed, test, s.plan.only), again(seed, test, s.plan.only))
}
