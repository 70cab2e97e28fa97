package simulation

import (
	"math/rand/v2"
	"testing"

	"github.com/leasehold-go/leasehold"
)

// Clients stand in line in the record, in every other seed only some of them. Some die
// there, or leave it, and whoever overwrites a record erases its line.
func TestSimulationOfLines(t *testing.T) { forSeeds(t, worldSeeds, likewise(lines)) }

func lines(seed uint64) world {
	return world{
		shared: seed%5 == 0,
		config: func(cfg *leasehold.Config, rng *rand.Rand) { cfg.Line = seed%2 == 0 || rng.IntN(3) > 0 },
	}
}
