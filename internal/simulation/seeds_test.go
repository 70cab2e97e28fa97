package simulation

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/lab"
)

const (
	lockSeeds   = 200 // number of seeds of TestSimulation; at scale there are more
	recipeSeeds = 30  // number of seeds of each recipe
)

// tests runs each seed on its own and on one thread, so that a seed has the same history in
// every run. Under the race detector it may use more threads, because the detector makes
// the scheduler pick goroutines at random anyway.
type tests struct{ *testing.M }

func (m tests) Run() int {
	debug.SetGCPercent(400) // a run keeps little memory in use, so garbage can be collected rarely
	if !lab.Race {
		runtime.GOMAXPROCS(1)
	}
	return m.M.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }

// simulation runs a seed. The hooks and the choice of faults come from watched; the
// simulation itself defines the rest of the world.
type simulation func(t *testing.T, seed uint64, watched world)

// forSeeds runs a simulation for LEASEHOLD_SEEDS seeds, or for count seeds by default.
func forSeeds(t *testing.T, count uint64, run simulation) {
	first := uint64(1)
	if s := os.Getenv("LEASEHOLD_SEEDS"); s != "" {
		count = mustUint(t, s)
	} else if lab.Race { // make check runs the remaining seeds without the race detector
		count = max(count/4, 1)
	}
	if s := os.Getenv("LEASEHOLD_SEED"); s != "" {
		first, count = mustUint(t, s), 1
	}
	t.Logf("seeds %d to %d", first, first+count-1)
	if os.Getenv("LEASEHOLD_SHRINK") != "" {
		for seed := first; seed < first+count && !t.Failed(); seed++ {
			reportShrunk(t, seed, run)
		}
		return
	}
	workers := uint64(min(runtime.GOMAXPROCS(0), int(count)))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for seed := first + w; seed < first+count && !t.Failed(); seed += workers {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { run(t, seed, world{only: planned()}) })
			}
		})
	}
	wg.Wait()
}

// reportShrunk reports a minimal set of faults with which a seed fails.
func reportShrunk(t *testing.T, seed uint64, run simulation) {
	s := shrink(t, seed, run, world{only: planned()})
	if s.problem == "" {
		t.Logf("seed %d keeps every promise", seed)
		return
	}
	t.Log(strings.Join(s.history, "\n"))
	for _, f := range s.faults {
		t.Log(f)
	}
	t.Errorf("seed %d: %s\nwith %d faults of %d, above; again: %s", seed, ids{}.in(s.problem), len(s.faults), s.before, again(seed, door(t), idsOf(s.faults)))
}

// door returns the name of the test that runs a simulation: the last part of t's name that
// names a test.
func door(t *testing.T) string {
	name := ""
	for part := range strings.SplitSeq(t.Name(), "/") {
		if strings.HasPrefix(part, "Test") {
			name = part
		}
	}
	return name
}

// again returns the command that runs a seed again.
func again(seed uint64, test string, only []string) string {
	plan := ""
	if only != nil {
		plan = " LEASEHOLD_PLAN=" + strings.Join(only, ",")
	}
	return fmt.Sprintf("LEASEHOLD_SEED=%d%s go test -run '^%s$' ./internal/simulation", seed, plan, test)
}

func mustUint(t *testing.T, s string) uint64 {
	return lab.Must(strconv.ParseUint(s, 10, 64))(t)
}
