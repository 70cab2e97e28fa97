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
	lockSeeds   = 200 // default number of seeds of TestSimulation; TestSimulationAtScale runs more
	recipeSeeds = 30  // default number of seeds of the simulation of each recipe, such as elections
)

// tests runs each seed on one thread, without other seeds beside it, so that every run of a
// seed has the same history. Under the race detector the tests may use more threads: the
// detector makes the scheduler pick goroutines at random anyway.
type tests struct{ *testing.M }

func (m tests) Run() int {
	debug.SetGCPercent(400) // a run uses little memory, so rare garbage collections are enough
	if !lab.Race {
		runtime.GOMAXPROCS(1)
	}
	return m.M.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }

// simulation runs one seed. The hooks and the choice of faults come from watched.
// The simulation itself decides the other properties of the world.
type simulation func(t *testing.T, seed uint64, watched world)

// forSeeds runs a simulation for count seeds or, if the environment variable
// LEASEHOLD_SEEDS is set, for that many.
func forSeeds(t *testing.T, count uint64, run simulation) {
	first := uint64(1)
	if s := os.Getenv("LEASEHOLD_SEEDS"); s != "" {
		count = mustUint(t, s)
		// Fewer seeds run under the race detector. The command make check also runs all of them
		// without the detector.
	} else if lab.Race {
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

// reportShrunk runs a seed. If the seed fails, it reports a minimal set of
// faults with which the seed still fails.
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

// door returns the name of the test that runs the simulation now. In the path of t's name
// this is the last part that begins with Test.
func door(t *testing.T) string {
	name := ""
	for part := range strings.SplitSeq(t.Name(), "/") {
		if strings.HasPrefix(part, "Test") {
			name = part
		}
	}
	return name
}

// again returns the shell command that repeats a seed.
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
