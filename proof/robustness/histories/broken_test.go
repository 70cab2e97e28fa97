package histories

import (
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// The test breaks the lock on purpose in several ways. For each way, it runs random
// histories until the checker rejects one. Some faults are visible only in the records,
// such as a guard that checks the owner alone. The checker cannot find these faults, but
// the simulation can.
func TestCheckerDetectsBrokenLockFromHistories(t *testing.T) {
	if lab.Race {
		t.Skip("the race detector makes it five times as long, and finds nothing in locks that are broken; make check runs this without it")
	}
	for name, v := range map[string]struct {
		how   sharing
		model porcupine.Model
	}{
		"grants whoever holds the key":              {mutexes.tampered(unconditionalGrants), lockModel},
		"tokens that stay":                          {mutexes.tampered(tokensThatStay), lockModel},
		"trust by a clock that goes at half a rate": {mutexes.slow(), lockModel},
		"a guard on nothing":                        {mutexes.tampered(noGuard), lockModel},
		"a new idempotency token for every request": {mutexes.tampered(newTokenEveryTime), lockModel},
		"permits of whoever holds them":             {semaphores.tampered(unconditionalGrants), semaphoreModel()},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 3000; seed++ {
				ops := play(t, seed, v.how).operations()
				if porcupine.CheckOperationsTimeout(v.model, ops, undecided) == porcupine.Illegal {
					t.Logf("seed %d:\n\t%s", seed, strings.Join(lines(ops), "\n\t"))
					return
				}
			}
			t.Error("no history shows it")
		})
	}
}

func (s sharing) tampered(tamper func(op string, body []byte) []byte) sharing {
	s.tamper = tamper
	return s
}

// slow makes one clock run at half speed. It then differs from the other clocks by more
// than the margin allows.
func (s sharing) slow() sharing {
	s.slowest = 0.5
	return s
}
