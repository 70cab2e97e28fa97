package simulation

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// shrunk is the result of shrinking: the remaining faults of a failing seed.
type shrunk struct {
	problem string
	faults  []injected
	before  int // number of faults before shrinking
	history []string
}

// shrink removes faults from a seed as long as the seed still breaks the same invariant. It
// first removes halves, then smaller and smaller parts (Zeller and Hildebrandt,
// "Simplifying and Isolating Failure-Inducing Input", 2002). The result fails, but would
// not fail if any one of its faults were removed.
func shrink(t *testing.T, seed uint64, run func(t *testing.T, seed uint64, plan world), plan world) shrunk {
	try := func(only []string) (s shrunk) {
		plan.only = only
		plan.report = func(problem string) { s.problem = problem }
		plan.told = func(lines []string) { s.history = lines }
		plan.injected = func(faults []injected) { // records each fault once, although a lasting fault is reported repeatedly
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
			rest := append(append([]string{}, left[:from]...), left[min(from+size, len(left)):]...) // never nil, because nil would mean all faults
			if s := try(rest); s.problem == invariant || strings.HasPrefix(s.problem, invariant+":") {
				best, cut = s, true
				// If a fault happens only together with the faults left out, it is not
				// needed either.
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

// Shrinking leaves a plan with a few faults, which shows the cause of a failure. Under the
// plan the seed must fail, need each of its faults, and be repeatable.
func TestFailingSeedIsReducedToNeededFaults(t *testing.T) {
	twice := tampered(newTokenEveryTime, simulate)
	seed, s := uint64(0), shrunk{}
	for !strings.HasPrefix(s.problem, "invariant 8:") {
		seed++
		s = shrink(t, seed, twice, world{})
	}
	t.Logf("seed %d: %d faults of %d: %v\n%s", seed, len(s.faults), s.before, s.faults, s.problem)
	if len(s.faults) == 0 || len(s.faults) > s.before/3 || s.before < 10 { // expected faults: one lost reply and a few faults that bring two processes together
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
