//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Asker checks whether the protocol model in history.h allows the histories that the
// simulation has recorded.
type Asker struct {
	dir        string // directory that contains the compiled verifier
	simulation string // path of the simulation's compiled tests
	where      string // directory in which the simulation's tests run
}

// NewAsker compiles the model and the simulation's tests. Close removes the compiled files.
func NewAsker(ctx context.Context, c *Checker) (*Asker, error) {
	dir, err := c.compile(ctx, "history.h", nil, []string{"-DSAFETY", "-O2"})
	if err != nil {
		return nil, err
	}
	a := &Asker{dir: dir, simulation: filepath.Join(dir, "simulation"), where: filepath.Join(c.dir, "..", "..", "internal", "simulation")}
	if out, err := run(ctx, a.where, "go", "test", "-c", "-o", a.simulation, "."); err != nil {
		return nil, errors.Join(fmt.Errorf("the simulation does not compile: %w\n%s", err, out), a.Close())
	}
	return a, nil
}

// Close removes the compiled files.
func (a *Asker) Close() error { return os.RemoveAll(a.dir) }

// Histories runs the simulation for the given number of seeds and returns its histories. If
// broken is not empty, it is the name of a deliberate defect, and the simulation runs code
// with this defect.
func (a *Asker) Histories(ctx context.Context, seeds int, broken string) (histories []History, err error) {
	path := filepath.Join(a.dir, "written")
	cmd := exec.CommandContext(ctx, a.simulation, "-test.run=^TestHistoriesOfSimulationAreWrittenToFile$", "-test.timeout=0") //nolint:gosec // this program has compiled the binary
	cmd.Dir = a.where
	cmd.Env = append(os.Environ(), "LEASEHOLD_WRITES="+path, "LEASEHOLD_BROKEN="+broken, fmt.Sprint("LEASEHOLD_SEEDS=", seeds))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the simulation: %w\n%s", err, out)
	}
	file, err := os.Open(path) //nolint:gosec // the path is in a directory of this program
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return ReadHistories(file)
}

// Refusal is a history that the model does not allow. The model can execute the events before
// index At, but no execution of these events can continue with the event at index At.
type Refusal struct {
	History
	At int
}

func (r Refusal) String() string {
	const before = 12
	return fmt.Sprintf("%s: the model has no execution with event %d, the last of\n\t%s", r.Name, r.At+1,
		strings.Join(r.Lines[max(0, r.At-before):min(r.At+1, len(r.Lines))], "\n\t"))
}

// Refused returns the histories that the model does not allow.
func (a *Asker) Refused(ctx context.Context, histories []History) ([]Refusal, error) {
	const atOnce = 2000 // maximum number of histories in one run of the verifier, which then uses several hundred megabytes of memory
	var refused []Refusal
	for some := range slices.Chunk(histories, atOnce) {
		theirs, err := a.ask(ctx, some)
		if err != nil {
			return nil, err
		}
		refused = append(refused, theirs...)
	}
	return refused, nil
}

// answer matches the line of the verifier's output for one history. The line contains the
// verdict, and the number of events that the model could execute.
var answer = regexp.MustCompile(`(?m)^history \d+ (accepted|refused) (\d+)$`)

func (a *Asker) ask(ctx context.Context, histories []History) ([]Refusal, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := writeEvents(filepath.Join(a.dir, "events"), histories); err != nil {
		return nil, err
	}
	// When the model does not allow a history, none of the model's processes can continue.
	// With -E, the verifier does not report this state as an error.
	out, ran := run(ctx, a.dir, filepath.Join(a.dir, "pan"), fmt.Sprintf("-m%d", deepest), "-w22", "-E")
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%d histories took longer than %s", len(histories), patience)
	}
	if _, err := Read(out); err != nil {
		return nil, errors.Join(err, ran)
	}
	answers := answer.FindAllStringSubmatch(out, -1)
	if len(answers) != len(histories) {
		return nil, fmt.Errorf("the verifier reports %d of %d histories", len(answers), len(histories))
	}
	var refused []Refusal
	for i, said := range answers {
		if said[1] == "refused" {
			at, err := strconv.Atoi(said[2])
			if err != nil {
				return nil, err
			}
			refused = append(refused, Refusal{histories[i], at})
		}
	}
	return refused, nil
}

// writeEvents writes histories to a file, in the format that the C code in events.h reads.
func writeEvents(path string, histories []History) error {
	var all [][]int
	counts := make([]int, len(histories))
	for i, h := range histories {
		events, err := numbersOf(h)
		if err != nil {
			return err
		}
		counts[i], all = len(events), append(all, events...)
	}
	file, err := os.Create(path) //nolint:gosec // the path is in a directory of this program
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	for _, numbers := range slices.Concat([][]int{{len(histories)}, counts}, all) {
		fmt.Fprintln(out, strings.Trim(fmt.Sprint(numbers), "[]"))
	}
	return errors.Join(out.Flush(), file.Close())
}
