package simulation

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// tally counts operations, and the faults that these operations met.
type tally struct {
	Operations map[string]int // number of operations, by name
	Faulted    map[string]int // number of operations with a request that met a fault, by name
	Requests   int
	Faults     map[fault]int
	Runs       int
	Violations int
	Seeds      map[string][2]uint64 // first and last seed of each test's runs, by test
}

func newTally() *tally {
	return &tally{Operations: map[string]int{}, Faulted: map[string]int{}, Faults: map[fault]int{}, Seeds: map[string][2]uint64{}}
}

// operation is a call to a client, or an operation that the client itself starts, such as a
// renewal. An operation that the client starts is over once one of its requests meets no fault.
type operation struct {
	what          string
	faulted, over bool
}

type operationKey struct{}

// operation counts a call to the client. The caller makes the call with the returned context, and
// then calls the returned function. A random delay keeps the call from beginning at the same
// instant as an operation that the client itself starts.
func (c *process) operation(ctx context.Context, what string) (of context.Context, over func()) {
	who, _ := ctx.Value(workerKey{}).(string)
	c.goesAbout(who)
	time.Sleep(time.Nanosecond + upTo(drawn(c.seed, "asks", c.id, who, what, time.Now()), slot))
	c.checker.mu.Lock()
	defer c.checker.mu.Unlock()
	o := &operation{what: what}
	c.tally.Operations[what]++
	return context.WithValue(mayWait(ctx), operationKey{}, o), func() {
		c.checker.mu.Lock()
		defer c.checker.mu.Unlock()
		o.over = true
	}
}

// asks does the same as the method operation, for a call that sends no request after it has
// returned. So asks returns no function that records the end of the call.
func (c *process) asks(ctx context.Context, what string) context.Context {
	of, _ := c.operation(ctx, what)
	return of
}

// counts adds a request, and the fault that it met, to the tally. A request that fails in a crash
// counts only if it belongs to a call in progress that has not met a fault before.
func (c *process) counts(ctx context.Context, r *request, f fault) {
	c.checker.mu.Lock()
	defer c.checker.mu.Unlock()
	o, _ := ctx.Value(operationKey{}).(*operation)
	alone := o == nil || o.over
	// A crash counts once for each operation, even if several of the operation's requests fail.
	if f == inCrash && (alone || o.faulted) {
		return
	}
	if f == inCrash || f == inPartition || f == inSuspend || f == inOutage || f == inPause {
		c.tally.Faults[f]++ // faults of all other kinds were counted when they happened
	}
	if alone {
		c.tally.alone(c.own, r, f)
	} else {
		if r.manner == handsOver && o.what == "release" {
			c.tally.Operations[o.what]--
			o.what = "hand over"
			c.tally.Operations[o.what]++
		}
		c.tally.count(o, f)
	}
}

// count adds a request of an operation, and the fault that the request met, to the tally.
func (t *tally) count(o *operation, f fault) {
	t.Requests++
	if f != none && !o.faulted {
		o.faulted = true
		t.Faulted[o.what]++
	}
}

// The method "alone" adds to the tally a request that belongs to no call in progress. If the
// previous request of the same kind and keys met a fault, both requests belong to the same
// operation. Otherwise a new operation begins.
func (t *tally) alone(open map[string]*operation, r *request, f fault) {
	about := r.operation() + " " + strings.Join(r.keys, ", ")
	o := open[about]
	if o == nil {
		o = &operation{what: r.operation()}
		open[about] = o
		t.Operations[o.what]++
	}
	if f == none {
		delete(open, about)
	}
	t.count(o, f)
}

// total is the sum of the tallies of all runs of this test process.
var total = struct {
	sync.Mutex
	*tally
}{tally: newTally()}

// enter adds the tally of one run to the total.
func (t *tally) enter(test string, seed uint64, violated bool) {
	t.Runs, t.Seeds[test] = 1, [2]uint64{seed, seed}
	if violated {
		t.Violations = 1
	}
	total.Lock()
	defer total.Unlock()
	total.add(t)
}

// add adds the numbers of another tally to t.
func (t *tally) add(o *tally) {
	for what, n := range o.Operations {
		t.Operations[what] += n
	}
	for what, n := range o.Faulted {
		t.Faulted[what] += n
	}
	for f, n := range o.Faults {
		t.Faults[f] += n
	}
	t.Requests += o.Requests
	t.Runs += o.Runs
	t.Violations += o.Violations
	for test, seeds := range o.Seeds {
		if of, ok := t.Seeds[test]; ok {
			seeds = [2]uint64{min(of[0], seeds[0]), max(of[1], seeds[1])}
		}
		t.Seeds[test] = seeds
	}
}

func (t *tally) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d seeds, %d operations, %d of them faulted, %d requests, %d faults, %d violations\n",
		t.Runs, sum(t.Operations), sum(t.Faulted), t.Requests, sum(t.Faults), t.Violations)
	for _, what := range slices.Sorted(maps.Keys(t.Operations)) {
		fmt.Fprintf(&out, "  %10d  %s, %d faulted\n", t.Operations[what], what, t.Faulted[what])
	}
	fmt.Fprintln(&out, "faults:")
	for _, f := range slices.Sorted(maps.Keys(t.Faults)) {
		fmt.Fprintf(&out, "  %10d  %s\n", t.Faults[f], f)
	}
	fmt.Fprintln(&out, "seeds:")
	for _, test := range slices.Sorted(maps.Keys(t.Seeds)) {
		fmt.Fprintf(&out, "  %s: %d to %d\n", test, t.Seeds[test][0], t.Seeds[test][1])
	}
	return out.String()
}

func sum[K comparable](of map[K]int) int {
	n := 0
	for _, k := range of {
		n += k
	}
	return n
}

func TestTallyCountsSeveralFaultsInOneOperationAsOneFault(t *testing.T) {
	c := &process{run: &run{checker: newChecker()}, own: map[string]*operation{}, workers: map[string]string{}, lastAsked: map[string]asking{}}
	sends := func(ctx context.Context, op string, faults ...fault) {
		r := newRequest(c, lab.Call{Op: op, Body: []byte(`{"Key":{"key":{"S":"a"}}}`)})
		for _, f := range faults {
			c.counts(ctx, r, f)
		}
	}
	acquire, over := c.operation(t.Context(), "acquire")
	sends(acquire, "GetItem", requestLost, replyLost, none)
	sends(c.asks(t.Context(), "release"), "UpdateItem", none)
	over()
	// The call "acquire" is over, so each request belongs to an operation that the client itself
	// starts. The first three requests belong to one renewal: two that met a fault, and one that
	// did not. The last request belongs to the next renewal.
	sends(acquire, "UpdateItem", throttledOnce, requestLate, none, none)
	// A crash counts as one fault of the operation in progress, even if several of the operation's
	// requests fail. Requests that belong to no call and fail in a crash do not count.
	sends(c.asks(t.Context(), "commit"), "GetItem", none, inCrash, inCrash)
	sends(t.Context(), "GetItem", inCrash)

	want := map[string]int{"acquire": 1, "release": 1, "renewal in the background": 2, "commit": 1}
	lab.Want(t, "operations", c.tally.Operations, want)
	want = map[string]int{"acquire": 1, "renewal in the background": 1, "commit": 1}
	lab.Want(t, "faulted", c.tally.Faulted, want)
	lab.Want(t, "requests", c.tally.Requests, 10)
}

// TestHistoriesOfSimulationAreWrittenToFile writes the histories of several seeds to the file that
// the environment variable LEASEHOLD_WRITES names. Programs in proof/spec check them against the
// models. If LEASEHOLD_BROKEN is set, the test simulates the variant of that name, which is broken
// on purpose.
func TestHistoriesOfSimulationAreWrittenToFile(t *testing.T) {
	path := os.Getenv("LEASEHOLD_WRITES")
	if path == "" {
		t.Skip("runs only if LEASEHOLD_WRITES names a file, as in proof/spec")
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
			w.report = func(string) {} // the models must find the violations
		}
		run(t, seed, w)
	})
	lab.OK(t, out.Flush())
	lab.OK(t, file.Close())
}

// written is the simulation whose histories are checked against the models of proof/spec. In all
// of its seeds, clients wait in queues. There are no sessions, because these have a model of their
// own. No client deletes records, because the models do not contain deletion.
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

// brokenWrites lists variants of the simulation. The check against the models must fail for each of
// them, because their requests violate a rule of the protocol, or their clocks are wrong.
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
