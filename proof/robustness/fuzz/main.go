// Command fuzz runs every fuzz target of the library, several at a time, and prints the number
// of executions of each target. If a target fails, fuzz prints the path of the failing input,
// and a command that runs the target with this input.
//
//	go run ./fuzz -time 1m          # in proof/robustness: each target for a minute
//	go run ./fuzz -executions 1e6   # each target a million times
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	each := flag.Duration("time", time.Minute, "how long each target runs")
	executions := flag.Float64("executions", 0, "how often each target is executed, instead of -time")
	atOnce := flag.Int("at-once", 2, "how many targets run at once, each in one process")
	only := flag.String("only", "", "regular expression of the targets to run")
	root := flag.String("root", "../..", "directory of the module")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	targets, err := find(*root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "leasehold-fuzz-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var chosen []*target
	for _, t := range targets {
		if match.MatchString(t.name) {
			chosen = append(chosen, t)
		}
	}
	if len(chosen) == 0 {
		return errors.New("no fuzz target of that name")
	}
	for _, t := range chosen {
		if err := t.build(ctx, dir); err != nil {
			return err
		}
	}
	began := time.Now()
	turn := make(chan struct{}, *atOnce)
	var wg sync.WaitGroup
	for _, t := range chosen {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			t.fuzz(ctx, *each, int64(*executions))
			fmt.Println(t)
		})
	}
	wg.Wait()
	total, failed := 0, 0
	for _, t := range chosen {
		total += t.executions
		if t.err != nil {
			failed++
		}
	}
	fmt.Printf("%d executions of %d targets in %v, %d failed\n", total, len(chosen), time.Since(began).Round(time.Second), failed)
	if failed > 0 {
		return errors.New("fuzz: see above")
	}
	return nil
}

// target is a fuzz target with the result of its run.
type target struct {
	name, dir string
	binary    string

	executions int
	said       string // last part of the output if the target failed
	err        error
}

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)

// find returns the fuzz targets of the module in root. It skips nested modules, because
// they have no fuzz targets.
func find(root string) ([]*target, error) {
	var all []*target
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
				return filepath.SkipDir
			}
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path) //nolint:gosec // G304: path is a file of this project
		if err != nil {
			return err
		}
		for _, m := range declaration.FindAllSubmatch(source, -1) {
			all = append(all, &target{name: string(m[1]), dir: filepath.Dir(path)})
		}
		return nil
	})
	return all, err
}

// build builds the test binary of the target's package, unless an earlier target of the
// same package has built it.
func (t *target) build(ctx context.Context, dir string) error {
	abs, err := filepath.Abs(t.dir)
	if err != nil {
		return err
	}
	t.binary = filepath.Join(dir, strings.ReplaceAll(strings.Trim(abs, "/"), "/", "-")+".test")
	if _, err := os.Stat(t.binary); err == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-fuzz", ".", "-o", t.binary, ".") //nolint:gosec // G204: the output is in a directory of this program
	cmd.Dir = t.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", t.dir, err, out)
	}
	return nil
}

var executed = regexp.MustCompile(`execs: (\d+)`)

// fuzz runs the target in a single worker process for the given time. If executions is above 0, it
// ignores the time, and stops after that many executions.
func (t *target) fuzz(ctx context.Context, each time.Duration, executions int64) {
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		t.err = err
		return
	}
	abs, err := filepath.Abs(t.dir)
	if err != nil {
		t.err = err
		return
	}
	corpora := filepath.Join(strings.TrimSpace(string(cache)), "fuzz", "leasehold", filepath.Base(t.binary), t.name)
	args := []string{
		"-test.run=^$", "-test.fuzz=^" + t.name + "$", "-test.fuzzminimizetime=5s",
		"-test.fuzzcachedir=" + filepath.Dir(corpora), "-test.parallel=1",
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if executions > 0 {
		args = append(args, "-test.fuzztime="+strconv.FormatInt(executions, 10)+"x")
	} else {
		// Interrupt the run when the time has passed, as Ctrl-C does. A run with -test.fuzztime
		// sometimes fails with "context deadline exceeded" although no input failed
		// (https://go.dev/issue/75804).
		limited, cancel = context.WithTimeout(ctx, each)
	}
	defer cancel()
	cmd := exec.CommandContext(limited, t.binary, args...) //nolint:gosec // G204: the binary contains tests of this project
	cmd.Dir = abs
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	// The target must end within a minute after the interrupt. A target that does not end
	// has failed, because it hangs on some input.
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil // the interrupt ended the run, so this is no failure
	}
	if all := executed.FindAllSubmatch(out, -1); len(all) > 0 {
		t.executions, _ = strconv.Atoi(string(all[len(all)-1][1])) // Atoi cannot fail here, because the match contains only digits
	}
	if err != nil {
		t.err = err
		t.said = string(out[max(0, len(out)-4000):])
	}
}

// String returns the result of the target: one line, or several lines if the target failed.
func (t *target) String() string {
	where := "./" + strings.TrimPrefix(t.dir, "../../")
	if t.err == nil {
		return fmt.Sprintf("%-18s %-20s %10d executions", t.name, where, t.executions)
	}
	return fmt.Sprintf("%s%v\n%s failed. Its input is in %s/testdata/fuzz/%[3]s; this replays it:\n  go test -run '^%[3]s$' %[4]s", t.said, t.err, t.name, where)
}
