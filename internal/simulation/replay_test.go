package simulation

import (
	"fmt"
	"strings"
	"testing"
)

// A failing seed is useful only if it fails again. So two runs of a seed must be the same,
// however goroutines are scheduled.
func TestSameSeedGivesSameHistory(t *testing.T) {
	for name, run := range map[string]simulation{
		"locks":           simulate,
		"shared leases":   likewise(sharedLeases),
		"lines":           likewise(lines),
		"wrong advice":    likewise(wrongAdvice),
		"once":            likewise(once),
		"elections":       simulateEveryElection,
		"semaphores":      simulateSemaphores,
		"several at once": simulatePhilosophers,
		"odd networks":    likewise(oddNetworks),
		"suspends":        likewise(suspends),
		"failing keys":    likewise(failingKeys),
		"closing":         likewise(closing),
		"breaking":        likewise(breaking),
		"breaks heard of": likewise(breakingShared),
		"deletion":        likewise(deletion),
		"damage":          likewise(damage),
		"detaching":       likewise(detaching),
		"groups":          likewise(groups),
		"outages":         likewise(outages),
		"by the clock":    simulateByTheClock,
		"everything":      simulateEverything,
		"skewed clocks":   skewedBy(wallSkew * 9 / 10),
		"set wall clocks": likewise(wallClocksAreSet),
		"bounded clocks":  likewise(boundedClocks(1)),
		"vouched lines":   likewise(vouchedLines),
		"closing once":    likewise(onceBeforeClose),
		"vouched once":    likewise(vouchedOnce),
		"refusals":        simulateRefusals,
	} {
		t.Run(name, func(t *testing.T) {
			forSeeds(t, 3, func(t *testing.T, seed uint64, _ world) {
				var first []string
				for i := range 4 {
					var again []string
					run(t, seed, world{yields: i > 0, told: func(lines []string) { again = lines }})
					if first == nil {
						first = again
					}
					if problem := firstDifference(first, again); problem != "" {
						t.Fatalf("seed %d: %s", seed, problem)
					}
				}
			})
		})
	}
}

func firstDifference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			before := a[max(0, i-5):min(i, len(a))]
			return fmt.Sprintf("line %d of %d and %d; after\n\t%s\nfirst\n\t%s\nthen\n\t%s", i, len(a), len(b), strings.Join(before, "\n\t"),
				strings.Join(a[min(i, len(a)):min(i+4, len(a))], "\n\t"), strings.Join(b[min(i, len(b)):min(i+4, len(b))], "\n\t"))
		}
	}
	if len(a) == 0 {
		return "nothing happened"
	}
	return ""
}
