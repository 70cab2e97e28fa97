package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// tally counts what was asked for, and what went wrong.
type tally struct {
	operations map[string]int // by what they are
	faulted    map[string]int // at least one request of which met a fault
	requests   int
	faults     map[fault]int
	runs       int
	violations int
}

func newTally() *tally {
	return &tally{operations: map[string]int{}, faulted: map[string]int{}, faults: map[fault]int{}}
}

// operation is what a client was asked for, or does by itself: then it lasts until
// one of its requests meets no fault.
type operation struct {
	what          string
	faulted, over bool
}

type operationKey struct{}

// operation counts what a process asks of its client with the context that it
// returns, until that is over.
func (c *process) operation(ctx context.Context, what string) (of context.Context, over func()) {
	c.checker.mu.Lock()
	defer c.checker.mu.Unlock()
	o := &operation{what: what}
	c.tally.operations[what]++
	return context.WithValue(ctx, operationKey{}, o), func() {
		c.checker.mu.Lock()
		defer c.checker.mu.Unlock()
		o.over = true
	}
}

// asks is operation for what leaves nothing behind that sends requests of its own.
func (c *process) asks(ctx context.Context, what string) context.Context {
	of, _ := c.operation(ctx, what)
	return of
}

// counts enters a request and what becomes of it. What a process that has died
// would go on with is not counted.
func (c *process) counts(ctx context.Context, r *request, f fault) {
	c.checker.mu.Lock()
	defer c.checker.mu.Unlock()
	o, _ := ctx.Value(operationKey{}).(*operation)
	alone := o == nil || o.over
	if f == inCrash && (alone || o.faulted) { // it counts as faulted once
		return
	}
	if f == inCrash || f == inPartition || f == inSuspend || f == inOutage || f == inPause {
		c.tally.faults[f]++ // others were entered as they happened
	}
	if alone {
		c.tally.alone(c.own, r, f)
	} else {
		if r.manner == handsOver && o.what == "release" {
			c.tally.operations[o.what]--
			o.what = "hand over"
			c.tally.operations[o.what]++
		}
		c.tally.of(o, f)
	}
}

// of enters a request of an operation.
func (t *tally) of(o *operation, f fault) {
	t.requests++
	if f != none && !o.faulted {
		o.faulted = true
		t.faulted[o.what]++
	}
}

// alone enters a request that nobody has asked for. Those that repeat one that met a
// fault are of the same operation.
func (t *tally) alone(open map[string]*operation, r *request, f fault) {
	about := r.operation() + " " + strings.Join(r.keys, ", ")
	o := open[about]
	if o == nil {
		o = &operation{what: r.operation()}
		open[about] = o
		t.operations[o.what]++
	}
	if f == none {
		delete(open, about)
	}
	t.of(o, f)
}

// total is of all runs of this process of the tests.
var total = struct {
	sync.Mutex
	*tally
	seeds map[string][2]uint64 // the first and the last, by test
}{tally: newTally(), seeds: map[string][2]uint64{}}

// add enters a run of a test.
func (t *tally) add(test string, seed uint64, violated bool) {
	total.Lock()
	defer total.Unlock()
	for what, n := range t.operations {
		total.operations[what] += n
	}
	for what, n := range t.faulted {
		total.faulted[what] += n
	}
	for f, n := range t.faults {
		total.faults[f] += n
	}
	total.requests += t.requests
	total.runs++
	if violated {
		total.violations++
	}
	of, ok := total.seeds[test]
	if !ok {
		of = [2]uint64{seed, seed}
	}
	total.seeds[test] = [2]uint64{min(of[0], seed), max(of[1], seed)}
}

// faultedSoFar is how many operations have met a fault.
func faultedSoFar() int {
	total.Lock()
	defer total.Unlock()
	return sum(total.faulted)
}

// totals spells what was done.
func totals() string {
	total.Lock()
	defer total.Unlock()
	var out strings.Builder
	fmt.Fprintf(&out, "%d seeds, %d operations, %d of them faulted, %d requests, %d faults, %d violations\n",
		total.runs, sum(total.operations), sum(total.faulted), total.requests, sum(total.faults), total.violations)
	for _, what := range slices.Sorted(maps.Keys(total.operations)) {
		fmt.Fprintf(&out, "  %10d  %s, %d faulted\n", total.operations[what], what, total.faulted[what])
	}
	fmt.Fprintln(&out, "faults:")
	for _, f := range slices.Sorted(maps.Keys(total.faults)) {
		fmt.Fprintf(&out, "  %10d  %s\n", total.faults[f], f)
	}
	fmt.Fprintln(&out, "seeds:")
	for _, test := range slices.Sorted(maps.Keys(total.seeds)) {
		fmt.Fprintf(&out, "  %s: %d to %d\n", test, total.seeds[test][0], total.seeds[test][1])
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
