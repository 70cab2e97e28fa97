package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// packages lists the packages whose code is mutated. Together they implement the lock
// protocol.
var packages = []string{
	".", "internal/attempts", "internal/attribute", "internal/breaking", "internal/core", "internal/decide", "internal/durations", "internal/fence", "internal/hold", "internal/lease", "internal/liveness",
	"internal/protocol", "internal/records", "internal/renewals", "internal/acquire", "internal/indoubt", "regions", "semaphore",
}

// others are the packages that are not mutated, but whose tests run code of mutated packages.
var others = []string{"rwlock", "election", "internal/ambiguity", "internal/behaviour", "internal/layouttest", "internal/simulation"}

// seeds sets an environment variable: the number of random seeds that each test of the simulation
// runs.
const seeds = "LEASEHOLD_SEEDS=6"

// witness is a test that is known to run a certain block of code.
type witness struct {
	Dir, Name string
	Took      time.Duration
}

// witnesses maps each source file to its blocks of code.
type witnesses map[string][]block

// block is a block of code as measured by go test -cover, with the tests that run it.
type block struct {
	From, To [2]int // line and column of the start and the end of the block
	By       []witness
}

// The method "at" returns the tests that run the code of a mutant. Tests of the mutant's own
// package come first, then tests of other packages, in the order of the variables "packages" and
// "others". Within a package, quick tests come first.
func (w witnesses) at(m Mutant) []witness {
	here := [2]int{m.At, m.Col}
	var by []witness
	for _, b := range w[m.File] {
		if slices.Compare(b.From[:], here[:]) <= 0 && slices.Compare(here[:], b.To[:]) < 0 {
			by = append(by, b.By...)
		}
	}
	own := filepath.Dir(m.File)
	slices.SortStableFunc(by, func(a, b witness) int {
		if d := rank(a.Dir, own) - rank(b.Dir, own); d != 0 {
			return d
		}
		return int(a.Took - b.Took)
	})
	return slices.CompactFunc(by, func(a, b witness) bool { return a.Dir == b.Dir && a.Name == b.Name })
}

func rank(dir, own string) int {
	if dir == own {
		return -1
	}
	return slices.Index(slices.Concat(packages, others), dir)
}

// readWitnesses reads witnesses from a file of an earlier run. If the file does not exist,
// it calls findWitnesses and writes the file. If no file is given, it only calls
// findWitnesses.
func readWitnesses(ctx context.Context, root, tmp, file string) (witnesses, error) {
	if file == "" {
		return findWitnesses(ctx, root, tmp)
	}
	var w witnesses
	b, err := os.ReadFile(file)
	if err == nil {
		return w, json.Unmarshal(b, &w)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if w, err = findWitnesses(ctx, root, tmp); err != nil {
		return nil, err
	}
	if b, err = json.Marshal(w); err != nil {
		return nil, err
	}
	return w, os.WriteFile(file, b, 0o600)
}

// findWitnesses runs each test alone, and records which blocks of code the test runs.
func findWitnesses(ctx context.Context, root, tmp string) (witnesses, error) {
	w := witnesses{}
	var cover []string
	for _, p := range packages {
		cover = append(cover, "./"+p)
	}
	for _, dir := range slices.Concat(packages, others) {
		bin := filepath.Join(tmp, "cover-"+strings.ReplaceAll(dir, "/", "-"))
		build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-cover", "-coverpkg="+strings.Join(cover, ","), "-o", bin, "./"+dir)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the tests of %s: %w\n%s", dir, err, out)
		}
		if _, err := os.Stat(bin); err != nil { // the package has no tests
			continue
		}
		if err := w.ask(ctx, root, dir, bin, tmp); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// ask runs each test of one package alone, and adds to w the blocks of code that each test
// runs.
func (w witnesses) ask(ctx context.Context, root, dir, bin, tmp string) error {
	list := exec.CommandContext(ctx, bin, "-test.list", "^(Test|Fuzz|Example)")
	list.Dir = filepath.Join(root, dir)
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w", dir, err)
	}
	names := strings.Fields(string(out))
	fmt.Fprintf(os.Stderr, "%s: %d tests\n", dir, len(names))
	var mu sync.Mutex
	var first error
	parallel(names, func(i int, name string) {
		profile := filepath.Join(tmp, fmt.Sprintf("%s-%d.cover", filepath.Base(bin), i))
		one := exec.CommandContext(ctx, bin, "-test.run", "^"+name+"$", "-test.coverprofile", profile)
		one.Dir = filepath.Join(root, dir)
		one.Env = append(os.Environ(), seeds)
		began := time.Now()
		out, err := one.CombinedOutput()
		took := time.Since(began)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			err = w.read(profile, witness{dir, name, took})
		} else {
			err = fmt.Errorf("%s of %s fails without a mutant: %w\n%s", name, dir, err, out)
		}
		if first == nil {
			first = err
		}
	})
	return first
}

// read adds to w the blocks in the coverage profile of one test.
func (w witnesses) read(profile string, by witness) error {
	f, err := os.Open(profile)
	if err != nil {
		return err
	}
	defer os.Remove(profile)
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		path, rest, ok := strings.Cut(lines.Text(), ".go:")
		if !ok { // the first line of a coverage profile contains its mode, not a block
			continue
		}
		var b block
		var statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.From[0], &b.From[1], &b.To[0], &b.To[1], &statements, &count); err != nil {
			return fmt.Errorf("%s: %w", profile, err)
		}
		if count > 0 {
			w.add(strings.TrimPrefix(strings.TrimPrefix(path+".go", module), "/"), b, by)
		}
	}
	return lines.Err()
}

func (w witnesses) add(file string, b block, by witness) {
	all := w[file]
	i := slices.IndexFunc(all, func(have block) bool { return have.From == b.From && have.To == b.To })
	if i < 0 {
		b.By = []witness{by}
		w[file] = append(all, b)
		return
	}
	all[i].By = append(all[i].By, by)
}
