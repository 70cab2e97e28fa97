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

// world describes how a simulation differs from the usual one.
type world struct {
	shared        bool                                     // all clients, or some of them, have a shared lease
	keeps         bool                                     // no client deletes records on release
	leases        []time.Duration                          // leases of the clients by id; empty for usualLease
	net           troubles                                 // faults in addition to the faults of every network
	skew          time.Duration                            // greatest difference between two wall clocks
	wall          func(*process, *rand.Rand) time.Duration // function that returns how far ahead a wall clock is; nil to use skew or a small default
	refusalsAlone bool                                     // temporary refusals are the only faults
	believes      bool                                     // clients may trust a lock for longer than its lease during an outage
	hears         time.Duration                            // time within which holders learn of a break once faults have stopped; 0 if some holders may not learn of it
	forgets       bool                                     // clients remember only keys that they are observing
	config        func(*leasehold.Config, *rand.Rand)
	work          func(*process, *worker)               // function that does the work of each goroutine; nil for section
	beside        func(t *testing.T, s *run, r *worker) // function that runs beside the clients, until the network is mended
	tamper        func(*http.Request, []byte) []byte    // function that changes requests in flight
	yields        bool                                  // goroutines yield at random, so that they run in any order
	misread       func([]byte) []byte                   // function that changes replies in flight
	report        func(problem string)                  // function that is called instead of failing the test
	told          func(history []string)                // function that receives the history
	wrote         func(key string, lines []string)      // function that receives the writes of each key, for the models of proof/spec
	injected      func([]injected)                      // function that receives the faults
	only          []string                              // ids of the faults that happen; nil for all
	kinds         []fault                               // kinds of faults that happen; nil for all
}

const (
	usualLease  = 4 * time.Second
	usualMargin = usualLease / 10
	faultsLast  = 10 * time.Second // how long the network misbehaves

	lastClient = 99 // id of the client that acquires every key in the end
)

// run is one run of a world.
type run struct {
	*checker
	w    *lab.World
	seed uint64
	plan world
	quit chan struct{} // closed when the network is mended

	clients []*process // set before any of them starts, except in "everything", where mu guards it
	all     []*process // every process that ever ran; guarded by mu
}

// damaged is a record that is not valid, so no client may be granted its lock.
var damaged = map[string]types.AttributeValue{"key": lab.Str("damaged"), "ownerName": lab.Str("someone")}

func newRun(t *testing.T, seed uint64, plan world) *run {
	s := &run{checker: newChecker(), w: lab.New(t).Work(), seed: seed, plan: plan, quit: make(chan struct{})}
	s.table, s.holdsOn, s.hears = s.w, plan.believes, plan.hears
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
			// A late copy of a grant under a live session blocks other clients for one
			// hour, the lease in its record. Once the session's client is closed, the grant
			// does not block them.
			s.closeAll()
		}
		s.checkLiveness(t, seed)
		s.closeAll()
		s.end(t)
	})
}

// mend ends the faults after the given time, and waits for the workers and for delayed
// requests.
func (s *run) mend(after time.Duration, workers *sync.WaitGroup) {
	time.Sleep(after)
	close(s.quit)
	workers.Wait()
	time.Sleep(6 * time.Second)
}

// closeAll closes every client of the run.
func (s *run) closeAll() {
	for _, c := range s.all {
		_ = c.client.Close(context.Background())
	}
}

// end waits for late duplicates, and checks and reports the run.
func (s *run) end(t *testing.T) {
	time.Sleep(20*time.Second + s.plan.net.copies)
	s.finish()
	if got := s.w.Item("damaged"); len(got) != len(damaged) {
		s.violated("10: a damaged record was overwritten with %v", got)
	}
	s.report(t, s.seed)
}

// report prints the violations, and how to run the seed again.
func (s *run) report(t *testing.T, seed uint64) {
	names := ids{}
	test := door(t)
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
