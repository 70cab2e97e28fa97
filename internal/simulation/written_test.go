package simulation

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// TestHistoriesOfSimulationAreWrittenToFile simulates several seeds, and writes the history of
// each run to the file that LEASEHOLD_WRITES names. proof/spec checks these histories
// against the models. With LEASEHOLD_BROKEN the test simulates a variant that is broken on
// purpose.
func TestHistoriesOfSimulationAreWrittenToFile(t *testing.T) {
	path := os.Getenv("LEASEHOLD_WRITES")
	if path == "" {
		t.Skip("writes to the file that LEASEHOLD_WRITES names, as spec has it do")
	}
	run := written
	name := os.Getenv("LEASEHOLD_BROKEN")
	if name != "" {
		if run = brokenWrites[name]; run == nil {
			t.Fatalf("there is no variant %q", name)
		}
	}
	file := lab.Must(os.Create(path))(t)
	out := bufio.NewWriter(file)
	forSeeds(t, 10, func(t *testing.T, seed uint64, w world) {
		w.wrote = func(key string, lines []string) {
			fmt.Fprintf(out, "seed %d key %s\n", seed, key)
			for _, line := range lines {
				fmt.Fprintln(out, line)
			}
		}
		if name != "" {
			w.report = func(string) {} // nothing is reported: the models find the violations
		}
		run(t, seed, w)
	})
	lab.OK(t, out.Flush())
	lab.OK(t, file.Close())
}

// written runs the world whose histories are checked against the models. In every other
// seed clients wait in queues. Sessions are left out because they have a model of their
// own. Clients delete no records, because deletion is not part of the models.
func written(t *testing.T, seed uint64, w world) {
	likewise(func(seed uint64) world {
		var plan world
		if seed%2 == 0 {
			plan = lines(seed / 2)
			plan.shared = false
		}
		plan.keeps, plan.work = true, w.work
		return plan
	})(t, seed, w)
}

// brokenWrites are variants whose histories the models must refuse. Either their requests
// omit a rule of the protocol, or their clocks are wrong.
var brokenWrites = map[string]simulation{
	"a guard on the owner alone":                 tampered(guardOnOwnerAlone, written),
	"a new token for every request":              tampered(newTokenEveryTime, written),
	"a grant that is resumed whatever it shows":  tampered(renewedWhateverItShows, written),
	"a takeover of whatever version there is":    tampered(takenOverWhateverItShows, written),
	"a release that names one attempt":           tampered(namingOneAttempt, written),
	"a grant that lands on its own release":      tampered(notLookingForItself, written),
	"a hand-over to whoever stands in the queue": tampered(handedToAnybody, written),
	"a lease that is over before its watcher has seen it pass": func(t *testing.T, seed uint64, w world) {
		w.work = leaping
		written(t, seed, w)
	},
}
