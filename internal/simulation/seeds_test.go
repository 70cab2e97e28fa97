package simulation

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

const (
	lockSeeds   = 1000 // these numbers, here and beside other worlds, are those of make check
	recipeSeeds = 150  // of each recipe
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// forSeeds runs a simulation for as many seeds as LEASEHOLD_SEEDS asks for: count
// if it is "all", a fifth of count by default.
func forSeeds(t *testing.T, count uint64, run func(t *testing.T, seed uint64)) {
	first := uint64(1)
	switch s := os.Getenv("LEASEHOLD_SEEDS"); {
	case s == "all":
	case s != "":
		count = mustUint(t, s)
	case testing.Short():
		count = max(count/20, 1)
	default:
		count = max(count/5, min(count, 3))
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
