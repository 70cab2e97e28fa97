package simulation

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// worlds are all simulations by the names of their tests, and how many seeds of
// each are run in how many rounds of TestSimulationAtScale.
var worlds = []struct {
	test         string
	seeds, every uint64
	run          simulation
}{
	{"TestSimulation", 5, 1, simulate},
	{"TestSimulationOfSharedLeases", 1, 1, likewise(sharedLeases)},
	{"TestPhilosophersWhoAcquireAllAlwaysEatInTheEnd", 1, 1, simulatePhilosophers},
	{"TestSimulationOfElections", 2, 1, simulateEveryElection},
	{"TestSimulationOfSemaphores", 2, 1, simulateSemaphores},
	{"TestSimulationOfReadWriteLocks", 2, 1, simulateReadWrite},
	{"TestSimulationOfOddNetworks", 1, 1, likewise(oddNetworks)},
	{"TestSimulationOfFailingKeys", 1, 1, likewise(failingKeys)},
	{"TestSimulationOfSuspends", 1, 1, likewise(suspends)},
	{"TestSimulationOfClosing", 1, 1, likewise(closing)},
	{"TestSimulationOfBreaking", 1, 1, likewise(breaking)},
	{"TestSimulationOfDeletion", 1, 1, likewise(deletion)},
	{"TestSimulationOfPassingOn", 1, 1, likewise(passingOn)},
	{"TestSimulationOfGroups", 1, 1, likewise(groups)},
	{"TestSimulationOfOutages", 1, 1, likewise(outages)},
	{"TestSimulationOfEverything", 4, 1, simulateEverything},
	{"TestSimulationOfLayoutsByTheClock", 1, 1, simulateByTheClock},
	{"TestSimulationOfSkewedClocks", 1, 1, skewedBy(wallSkew * 9 / 10)},
	{"TestSimulationOfLoad", 1, 20, simulateLoad}, // each holds hundreds of locks
}

// TestSimulationAtScale runs rounds of all worlds: until LEASEHOLD_FAULTED
// operations have met a fault, for as long as LEASEHOLD_FOR says, or until it is
// interrupted. The seeds start at LEASEHOLD_FIRST, or where nobody has looked yet.
func TestSimulationAtScale(t *testing.T) {
	faulted, lasts := os.Getenv("LEASEHOLD_FAULTED"), os.Getenv("LEASEHOLD_FOR")
	if faulted == "" && lasts == "" {
		t.Skip("runs for as long as LEASEHOLD_FAULTED or LEASEHOLD_FOR say, as make check and make soak do")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if lasts != "" {
		d, err := time.ParseDuration(lasts)
		if err != nil {
			t.Fatal(err)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	wanted := int(^uint(0) >> 1)
	if faulted != "" {
		wanted = int(mustUint(t, faulted))
	}
	first := uint64(time.Now().Unix()) * 1000
	if s := os.Getenv("LEASEHOLD_FIRST"); s != "" {
		first = mustUint(t, s)
	}
	runRounds(ctx, t, first, wanted)
	if got := faultedSoFar(); faulted != "" && got < wanted && !t.Failed() {
		t.Errorf("%d operations have met a fault, of %d that were asked for", got, wanted)
	}
}

// runRounds runs rounds until so many operations have met a fault, or ctx ends.
func runRounds(ctx context.Context, t *testing.T, first uint64, wanted int) {
	fmt.Printf("seeds from %d on\n", first)
	const tellEvery = time.Minute
	var mu sync.Mutex
	round, told := uint64(0), time.Now()
	next := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(told) > tellEvery {
			told = time.Now()
			fmt.Printf("%v\n%s", told.UTC().Format(time.TimeOnly), totals())
		}
		round++
		return round - 1, ctx.Err() == nil && faultedSoFar() < wanted && !t.Failed()
	}
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n, goesOn := next(); goesOn; n, goesOn = next() {
				for _, w := range worlds {
					if n%w.every != 0 {
						continue
					}
					for i := range w.seeds {
						seed := first + n/w.every*w.seeds + i
						t.Run(fmt.Sprint(w.test, "/", seed), func(t *testing.T) { w.run(t, seed, world{}) })
					}
				}
			}
		})
	}
	wg.Wait()
}

// A world that nobody runs at scale is hardly tried.
func TestEveryWorldIsRunAtScale(t *testing.T) {
	at := map[string]bool{}
	for _, w := range worlds {
		at[w.test] = true
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	door := regexp.MustCompile(`func (Test\w+)\(t \*testing\.T\) {\s+forSeeds\(`)
	found := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range door.FindAllSubmatch(text, -1) {
			found++
			if !at[string(m[1])] {
				t.Errorf("%s is not among worlds", m[1])
			}
		}
	}
	if found != len(worlds) {
		t.Errorf("%d tests of worlds were found, and there are %d worlds", found, len(worlds))
	}
}
