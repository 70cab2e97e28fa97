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

// world is a change of the simulation for its own tests.
type world struct {
	shared        bool                                     // clients renew one session for all their locks, or some of them do
	keeps         bool                                     // no client deletes records on release
	leases        []time.Duration                          // leases of the clients by their ids; empty for usualLease
	net           troubles                                 // besides the troubles of every network
	skew          time.Duration                            // the most that two wall clocks may differ by
	wall          func(*process, *rand.Rand) time.Duration // how far a wall clock is ahead; nil to use skew, or little
	refusalsAlone bool                                     // nothing goes wrong but refusals for a while
	believes      bool                                     // beyond the lease, in an outage
	hears         time.Duration                            // within which holders learn of a break, once faults have stopped; 0 if some do not
	forgets       bool                                     // clients observe the keys that they watch, and remember no others
	config        func(*leasehold.Config, *rand.Rand)
	work          func(*process, *worker)               // the work of each goroutine; nil for section
	beside        func(t *testing.T, s *run, r *worker) // runs beside the clients, until the network is repaired
	tamper        func(*http.Request, []byte) []byte    // changes requests on their way
	yields        bool                                  // goroutines run in any order at all
	misread       func([]byte) []byte                   // changes replies on their way
	report        func(problem string)                  // instead of failing the test
	told          func(history []string)                // receives the events
	wrote         func(key string, lines []string)      // receives the writes of each key, for the models
	injected      func([]injected)                      // receives the faults
	only          []string                              // ids of the faults that happen; nil for all
	kinds         []fault                               // kinds of faults that happen; nil for all
}

const (
	usualLease  = 4 * time.Second
	usualMargin = usualLease / 10
	faultsLast  = 10 * time.Second // while the network misbehaves

	lastClient = 99 // the id of the one that asks for every key in the end
)

// sim is one run.
type run struct {
	*checker
	w    *lab.World
	seed uint64
	plan world
	quit chan struct{} // closed when the network is mended

	clients []*process // set before the first of them does anything, or in everything; mu guards it there
	all     []*process // every process that ever ran; mu guards it
}

// damaged is a record that no client may be granted.
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
		time.Sleep(faultsLast)
		close(s.quit)
		wg.Wait()
		time.Sleep(6 * time.Second) // delayed requests arrive

		closeAll := func() {
			for _, c := range clients {
				_ = c.client.Close(context.Background())
			}
		}
		if plan.shared {
			// A grant that landed late under a live session blocks others for the hour in
			// the record, but not once the session's client is closed.
			closeAll()
		}
		s.checkLiveness(t, seed)
		closeAll()
		time.Sleep(20*time.Second + plan.net.copies) // late duplicates arrive
		s.finish()
		if got := s.w.Item("damaged"); len(got) != len(damaged) {
			s.violated("10: a damaged record was overwritten with %v", got)
		}
		s.report(t, seed)
	})
}

// report prints the violations, and how to replay them.
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
