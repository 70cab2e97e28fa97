package simulation

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// shrunk is a failing seed with a reduced set of faults.
type shrunk struct {
	problem string
	faults  []injected
	before  int // number of faults before they were reduced
	history []string
}

// shrink reduces the faults of a failing seed as long as the seed still breaks the same
// invariant. It first removes halves of them, then smaller and smaller parts (Zeller and
// Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002). With the
// remaining faults the seed fails. Without any one of them it does not.
func shrink(t *testing.T, seed uint64, run func(t *testing.T, seed uint64, plan world), plan world) shrunk {
	try := func(only []string) (s shrunk) {
		plan.only = only
		plan.report = func(problem string) { s.problem = problem }
		plan.told = func(lines []string) { s.history = lines }
		// A fault that lasts is reported several times, but recorded once.
		plan.injected = func(faults []injected) {
			for _, f := range faults {
				if !slices.ContainsFunc(s.faults, func(o injected) bool { return o.id == f.id }) {
					s.faults = append(s.faults, f)
				}
			}
		}
		run(t, seed, plan)
		return s
	}
	best := try(plan.only)
	if best.problem == "" {
		return best
	}
	invariant, _, _ := strings.Cut(best.problem, ":")
	before := len(best.faults)
	left := idsOf(best.faults)
	for parts := 2; len(left) > 0; {
		size := (len(left) + parts - 1) / parts
		cut := false
		for from := 0; from < len(left); from += size {
			// rest is never nil, because nil would mean all faults.
			rest := append(append([]string{}, left[:from]...), left[min(from+size, len(left)):]...)
			if s := try(rest); s.problem == invariant || strings.HasPrefix(s.problem, invariant+":") {
				best, cut = s, true
				// Some faults happen only because of other faults, which may now be left out. Then these
				// faults are not needed either.
				left = slices.DeleteFunc(rest, func(id string) bool { return !slices.Contains(idsOf(s.faults), id) })
				break
			}
		}
		switch {
		case cut:
			parts = max(parts-1, 2)
		case size == 1:
			best.before = before
			return best
		default:
			parts = min(2*parts, len(left))
		}
	}
	best.before = before
	return best
}

func idsOf(faults []injected) []string {
	ids := make([]string, len(faults))
	for i, f := range faults {
		ids[i] = f.id
	}
	return ids
}

// A failing seed is reduced to a plan of a few faults, which show the cause of the
// failure. If the seed runs again with this plan, it must fail in the same way and have
// the same history. Without any one of these faults it must not fail.
func TestFailingSeedIsReducedToNeededFaults(t *testing.T) {
	twice := tampered(newTokenEveryTime, simulate)
	seed, s := uint64(0), shrunk{}
	for !strings.HasPrefix(s.problem, "invariant 8:") {
		seed++
		s = shrink(t, seed, twice, world{})
	}
	t.Logf("seed %d: %d faults of %d: %v\n%s", seed, len(s.faults), s.before, s.faults, s.problem)
	// Two kinds of faults are needed: one lost reply, and a few faults that make two
	// processes act on the same key at the same time.
	if len(s.faults) == 0 || len(s.faults) > s.before/3 || s.before < 10 {
		t.Errorf("%d faults are left of %d", len(s.faults), s.before)
	}
	needed := idsOf(s.faults)
	for i := range needed {
		var problem string
		twice(t, seed, world{only: slices.Delete(slices.Clone(needed), i, i+1), report: func(p string) { problem = p }})
		if strings.HasPrefix(problem, "invariant 8:") {
			t.Errorf("it fails without %v", s.faults[i])
		}
	}
	t.Setenv("LEASEHOLD_PLAN", strings.Join(needed, ","))
	var again string
	var history []string
	twice(t, seed, world{only: planned(), report: func(p string) { again = p }, told: func(lines []string) { history = lines }})
	if (ids{}).in(again) != (ids{}).in(s.problem) {
		t.Errorf("given back, the plan comes to %q, before to %q", again, s.problem)
	}
	if problem := firstDifference(s.history, history); problem != "" {
		t.Error(problem)
	}
}

func TestEmptyFaultPlanCausesNoFaults(t *testing.T) {
	t.Setenv("LEASEHOLD_PLAN", "")
	var met []injected
	simulate(t, 1, world{only: planned(), injected: func(faults []injected) { met = faults }})
	if len(met) > 0 {
		t.Errorf("met %v", met)
	}
	lab.OK(t, os.Unsetenv("LEASEHOLD_PLAN"))
	simulate(t, 1, world{only: planned(), injected: func(faults []injected) { met = faults }})
	if len(met) == 0 {
		t.Error("without a plan no fault was met either")
	}
}
