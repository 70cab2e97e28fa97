//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/proof/interop/install"
)

// Limits of a search through the states of a model. A search that exceeds a limit fails.
const (
	atOnce   = 2                // number of searches at the same time
	memory   = 6000             // memory limit of each search, in megabytes
	deepest  = 500_000          // maximum depth of a search, in steps of the model
	patience = 10 * time.Minute // time limit of each search
)

// Checker runs searches through all states of models, with the model checker spin.
type Checker struct {
	dir      string
	spin, cc string
	more     int // number that each model adds to its bounds, such as its number of attempts (LEASEHOLD_BOUNDS)
}

// NewChecker returns a Checker for the models in dir. It installs spin and a C compiler if
// they are missing.
func NewChecker(ctx context.Context, dir string, more int) (*Checker, error) {
	spin, err := install.Debian(ctx, "spin", "spin")
	if err != nil {
		return nil, fmt.Errorf("the models need spin: %w", err)
	}
	cc, err := install.Debian(ctx, "gcc", "gcc", "libc6-dev")
	if err != nil {
		return nil, fmt.Errorf("the models need a C compiler: %w", err)
	}
	return &Checker{dir: dir, spin: spin, cc: cc, more: more}, nil
}

// Result is the outcome of one search through the states of a model.
type Result struct {
	Search
	Report
	Took time.Duration
	Err  error // nil if the search has the expected verdict
}

// All runs the given searches, at most two (atOnce) at the same time. It calls done with each
// result, in the order of the searches.
func (c *Checker) All(ctx context.Context, searches []Search, done func(Result)) {
	results := make([]chan Result, len(searches))
	for i := range results {
		results[i] = make(chan Result, 1)
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for i := range next {
				results[i] <- c.Run(ctx, searches[i])
			}
		})
	}
	workers.Go(func() {
		defer close(next)
		for i := range searches {
			next <- i
		}
	})
	for _, r := range results {
		done(<-r)
	}
	workers.Wait()
}

// Run runs one search. A complete model must hold, and a model without one of its rules must be
// refuted. If the verdict differs, the result contains an error.
func (c *Checker) Run(ctx context.Context, s Search) Result {
	r := Result{Search: s}
	want := Holds
	if s.Without != "" {
		want = Refuted
	}
	began := time.Now()
	r.Report, r.Err = c.search(ctx, s)
	r.Took = time.Since(began)
	if r.Err == nil && r.Verdict != want {
		r.Err = fmt.Errorf("%s: it is %s: %s", s, r.Verdict, r.Why)
	}
	return r
}

func (c *Checker) search(ctx context.Context, s Search) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	generate, compile := []string{fmt.Sprintf("-DMORE=%d", c.more)}, []string{"-O2"}
	verify := []string{fmt.Sprintf("-m%d", deepest), "-w22"}
	if s.Without != "" {
		generate = append(generate, "-DWITHOUT_"+s.Without)
		compile[0] = "-O1" // -O2 would take longer to compile than it would save in this short search
	}
	if s.InTime {
		generate = append(generate, "-DLIVENESS")
		compile = append([]string{"-DNFAIR=2"}, compile...)
		verify = append(verify, "-a", "-f")
	} else {
		compile = append([]string{"-DSAFETY"}, compile...)
	}
	work, err := c.compile(ctx, s.Model+".pml", generate, compile)
	if err != nil {
		return Report{}, fmt.Errorf("%s: %w", s, err)
	}
	defer os.RemoveAll(work)
	// The verifier's exit code is ignored, because its output contains the verdict.
	out, err := run(ctx, work, append([]string{filepath.Join(work, "pan")}, verify...)...)
	if ctx.Err() != nil {
		return Report{}, fmt.Errorf("%s: it took longer than %s", s, patience)
	}
	r, unread := Read(out)
	if unread != nil {
		return r, fmt.Errorf("%s: %w", s, errors.Join(unread, err))
	}
	return r, nil
}

// compile builds the verifier of a model (spin calls it pan) in a new directory, and
// returns that directory.
func (c *Checker) compile(ctx context.Context, model string, generate, compile []string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "leasehold-spec-"); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := os.CopyFS(dir, os.DirFS(c.dir)); err != nil {
		return "", err
	}
	for _, step := range [][]string{
		append(append([]string{c.spin, "-a"}, generate...), model),
		append(append([]string{c.cc, "-w", "-DNOREDUCE", fmt.Sprintf("-DMEMLIM=%d", memory)}, compile...), "-o", "pan", "pan.c"),
	} {
		if out, err := run(ctx, dir, step...); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(step, " "), err, out)
		}
	}
	return dir, nil
}

func run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the command is spin, the C compiler, or a verifier compiled by this program
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
