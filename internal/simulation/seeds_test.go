package simulation

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/lab"
)

const (
	lockSeeds   = 200 // default number of seeds of the simulation of locks; TestSimulationAtScaleFindsNoViolation runs more
	recipeSeeds = 30  // default number of seeds of the simulation of each recipe, such as elections
)

// tests is a testing.M that runs one seed at a time, on one thread, so that all runs of a seed have
// the same history. Under the race detector it uses more threads, because the scheduler then picks
// goroutines at random anyway.
type tests struct{ *testing.M }

func (m tests) Run() int {
	debug.SetGCPercent(400) // a run uses little memory, so rare garbage collections are enough
	if !lab.Race {
		runtime.GOMAXPROCS(1)
	}
	return m.M.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }

// simulation runs one seed in a world of its own choice. It takes some fields of this world from
// the parameter "watched": those that the method watchedAs copies and, in some simulations, other
// fields.
type simulation func(t *testing.T, seed uint64, watched world)

// forSeeds runs a simulation for the given number of seeds. The environment variable
// LEASEHOLD_SEEDS overrides this number.
func forSeeds(t *testing.T, count uint64, run simulation) {
	first := uint64(1)
	if s := os.Getenv("LEASEHOLD_SEEDS"); s != "" {
		count = mustUint(t, s)
	} else if lab.IsQuick() {
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
	t.Errorf("seed %d: %s\nwith %d faults of %d, above; again: %s", seed, ids{}.in(s.problem), len(s.faults), s.before, again(seed, testNameOf(t), idsOf(s.faults)))
}

// testNameOf returns the name of the test that runs the simulation now: the last part of t's
// name that begins with Test.
func testNameOf(t *testing.T) string {
	name := ""
	for part := range strings.SplitSeq(t.Name(), "/") {
		if strings.HasPrefix(part, "Test") {
			name = part
		}
	}
	return name
}

// The function "again" returns the shell command that repeats a seed.
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

// A failing seed is useful only if it fails in every run. So all runs of a seed must have the
// same history, in whatever order the scheduler runs goroutines.
func TestSameSeedGivesSameHistory(t *testing.T) {
	for _, w := range worlds {
		t.Run(w.test, func(t *testing.T) {
			forSeeds(t, 5, func(t *testing.T, seed uint64, _ world) {
				var first []string
				for i := range lab.Cases(4, 2) {
					var again []string
					w.run(t, seed, world{yields: i > 0, told: func(lines []string) { again = lines }})
					if first == nil {
						first = again
					}
					lab.Want(t, fmt.Sprint("first difference of seed ", seed), firstDifference(first, again), "")
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

// history contains the events of a run, in the order in which they happened.
type history struct {
	began  time.Time
	events []event
}

type event struct {
	at   time.Duration
	what string
}

func (h *history) enter(format string, args ...any) {
	h.events = append(h.events, event{time.Since(h.began), fmt.Sprintf(format, args...)})
}

// lines returns the history as text. It replaces random ids with names, and sorts events at the
// same instant by their text. So the result is the same for every run of a seed.
func (h *history) lines(names ids) []string {
	events := slices.Clone(h.events)
	slices.SortStableFunc(events, func(a, b event) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return strings.Compare(lab.Random.ReplaceAllString(a.what, ""), lab.Random.ReplaceAllString(b.what, ""))
	})
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = fmt.Sprintf("%v %s", e.at, names.in(e.what))
	}
	return lines
}

// ids contains a name for each random string. The names are numbered in the
// order in which the strings first appear.
type ids map[string]string

// shortOwner matches the owner name of a simulated client as error messages shorten it: with only
// four characters of the client id, such as test/ab2c.
var shortOwner = regexp.MustCompile(`\btest/[a-z2-7]{4}\b`)

func (n ids) in(text string) string {
	text = shortOwner.ReplaceAllString(text, "test/#")
	return lab.Random.ReplaceAllStringFunc(text, func(id string) string {
		if n[id] == "" {
			n[id] = fmt.Sprint("#", len(n)+1)
		}
		return n[id]
	})
}

// shrunk is a failing seed with a reduced set of faults.
type shrunk struct {
	problem string
	faults  []injected
	before  int // number of faults before they were reduced
	history []string
}

// shrink removes faults of a failing seed while the seed still breaks the same invariant. It
// removes halves first, then smaller parts (Zeller and Hildebrandt, "Simplifying and Isolating
// Failure-Inducing Input", 2002). Each of the remaining faults is necessary.
func shrink(t *testing.T, seed uint64, run func(t *testing.T, seed uint64, plan world), plan world) shrunk {
	try := func(only []string) (s shrunk) {
		plan.only = only
		plan.report = func(problem string) { s.problem = problem }
		plan.told = func(lines []string) { s.history = lines }
		// A fault that lasts for a while is in the list once for each request that met it. Keep one
		// entry for each fault.
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
				// Without the removed faults, some of the remaining faults did not happen in this
				// run. They are not needed, so remove them as well.
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

// With only the faults that shrink returns, a seed must fail in the same way and have the same
// history. Without any one of these faults, it must not fail.
func TestFaultsOfFailingSeedAreReducedToNecessaryOnes(t *testing.T) {
	twice := tampered(newTokenEveryTime, simulate)
	seed, s := uint64(0), shrunk{}
	for !strings.HasPrefix(s.problem, "invariant 8:") {
		seed++
		s = shrink(t, seed, twice, world{})
	}
	t.Logf("seed %d: %d faults of %d: %v\n%s", seed, len(s.faults), s.before, s.faults, s.problem)
	// The seed needs one lost reply, and a few faults that make two processes act on one key at the
	// same time.
	if len(s.faults) == 0 || len(s.faults) > s.before/3 || s.before < 10 {
		t.Errorf("%d faults are left of %d", len(s.faults), s.before)
	}
	needed := idsOf(s.faults)
	for i := range needed {
		var problem string
		twice(t, seed, world{only: slices.Delete(slices.Clone(needed), i, i+1), report: func(p string) { problem = p }})
		if strings.HasPrefix(problem, "invariant 8:") {
			t.Errorf("the seed fails without %v", s.faults[i])
		}
	}
	t.Setenv("LEASEHOLD_PLAN", strings.Join(needed, ","))
	var again string
	var history []string
	twice(t, seed, world{only: planned(), report: func(p string) { again = p }, told: func(lines []string) { history = lines }})
	lab.Want(t, "problem with the plan", (ids{}).in(again), (ids{}).in(s.problem))
	lab.Want(t, "first difference", firstDifference(s.history, history), "")
}

func TestEmptyFaultPlanCausesNoFaults(t *testing.T) {
	t.Setenv("LEASEHOLD_PLAN", "")
	var met []injected
	simulate(t, 1, world{only: planned(), injected: func(faults []injected) { met = faults }})
	lab.Want(t, "faults with an empty plan", len(met), 0)
	lab.OK(t, os.Unsetenv("LEASEHOLD_PLAN"))
	simulate(t, 1, world{only: planned(), injected: func(faults []injected) { met = faults }})
	if len(met) == 0 {
		t.Error("no fault happened without a plan")
	}
}
