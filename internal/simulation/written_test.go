package simulation

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// TestHistoriesOfSimulationAreWrittenToFile simulates several seeds. It writes the history of
// each run to the file that the environment variable LEASEHOLD_WRITES names. Programs in
// proof/spec check these histories against the models. If LEASEHOLD_BROKEN is set, the test
// simulates the variant of that name, which is broken on purpose.
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
			w.report = func(string) {} // violations are not reported here, because the models must find them
		}
		run(t, seed, w)
	})
	lab.OK(t, out.Flush())
	lab.OK(t, file.Close())
}

// written runs the world whose histories are checked against the models. In every other
// seed, clients wait in queues. There are no sessions, because these have a model of
// their own. No client deletes records, because the models do not contain deletion.
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

// brokenWrites lists variants of the simulation whose histories the models must refuse.
// In each variant, requests omit a rule of the protocol, or clocks are wrong.
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
