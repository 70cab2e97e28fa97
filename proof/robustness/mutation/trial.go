package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const module = "github.com/leasehold-go/leasehold"

// outcome is the result of running the tests against a mutant.
type outcome string

// Values of outcome.
const (
	killed   outcome = "killed"
	timedOut outcome = "timed out" // a test did not end; the mutant counts as killed
	survived outcome = "survived"
	unseen   outcome = "unseen"   // no test reaches the mutant
	invalid  outcome = "no Go"    // the mutant does not compile
	known    outcome = "harmless" // the mutant survived, and harmless.txt lists it with a reason
)

// result is the outcome for one mutant, with the name of the test that killed it.
type result struct {
	Mutant  string  `json:"mutant"`
	Outcome outcome `json:"outcome"`
	By      string  `json:"by,omitempty"`
	Package string  `json:"package"`
}

// trial tries mutants: for each mutant, it builds the tests with the changed code and runs
// these tests.
type trial struct {
	root, tmp string
	seen      witnesses
}

// batch is the number of tests in a package's first run against a mutant. This run contains the
// quickest tests that reach the mutant, and usually one of them kills it. If not, further runs
// contain more tests.
const batch = 25

// try finds the tests that reach the mutant, and builds them with the mutated file. It runs them
// until one fails.
func (t *trial) try(ctx context.Context, m Mutant) (result, error) {
	r := result{Mutant: m.Name, Outcome: unseen, Package: filepath.Dir(m.File)}
	work, err := os.MkdirTemp(t.tmp, "mutant")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(work)
	overlay, err := t.overlay(m, work)
	if err != nil {
		return r, err
	}
	by := t.seen.at(m)
	for len(by) > 0 {
		dir := by[0].Dir
		n := slices.IndexFunc(by, func(w witness) bool { return w.Dir != dir })
		if n < 0 {
			n = len(by)
		}
		here := by[:n]
		by = by[n:]
		bin := filepath.Join(work, "tests")
		build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", bin, "./"+dir)
		build.Dir = t.root
		if out, err := build.CombinedOutput(); err != nil {
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
			if !strings.Contains(string(out), m.File) && !strings.Contains(string(out), filepath.Base(m.File)) {
				return r, fmt.Errorf("build the tests of %s: %w\n%s", dir, err, out)
			}
			r.Outcome = invalid
			return r, nil
		}
		for size := batch; len(here) > 0; size *= 4 {
			some := here[:min(size, len(here))]
			here = here[len(some):]
			out, failed, err := t.run(ctx, bin, dir, some)
			if failed != "" || err != nil {
				r.Outcome, r.By = out, failed
				return r, err
			}
		}
		r.Outcome = survived
	}
	return r, nil
}

// overlay writes the mutated file, and a JSON file for the flag -overlay of go test, which
// makes the compiler use the mutated file. It returns the path of the JSON file.
func (t *trial) overlay(m Mutant, dir string) (string, error) {
	path := filepath.Join(t.root, m.File)
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	with, overlay := filepath.Join(dir, filepath.Base(m.File)), filepath.Join(dir, "overlay.json")
	b, err := json.Marshal(map[string]map[string]string{"Replace": {path: with}})
	return overlay, errors.Join(err, os.WriteFile(with, m.mutated(source), 0o600), os.WriteFile(overlay, b, 0o600))
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// run runs some tests of a package, built with a mutant. It returns the outcome, and the
// name of the first test that failed.
func (t *trial) run(ctx context.Context, bin, dir string, tests []witness) (outcome, string, error) {
	var names []string
	limit := 30 * time.Second
	for _, w := range tests {
		names = append(names, w.Name)
		limit += 5 * w.Took
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(within, bin, "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
	cmd.Dir = filepath.Join(t.root, dir)
	cmd.Env = append(os.Environ(), seeds)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return survived, "", ctx.Err()
	case err == nil:
		return survived, "", nil
	case within.Err() != nil:
		return timedOut, "a test of " + dir + " that does not end", nil
	}
	if failed := failedTest.FindSubmatch(out); failed != nil {
		return killed, string(failed[1]), nil
	}
	return killed, "a panic in " + dir, nil
}

// parallel calls the function do for each element of the slice all, on as many goroutines as
// there are processors.
func parallel[T any](all []T, do func(i int, one T)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				do(i, all[i])
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	wg.Wait()
}
