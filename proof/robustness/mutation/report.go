package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

//go:embed harmless.txt
var harmlessList string

// readHarmless returns the names of the mutants that are known to change no behaviour. Each line of
// "list" is the name of such a mutant, or a comment (#) with the reason for the names below it.
func readHarmless(list string, all []Mutant) (map[string]bool, error) {
	names := map[string]bool{}
	reason := ""
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			reason = ""
		case strings.HasPrefix(line, "#"):
			reason = line
		case reason == "":
			return nil, fmt.Errorf("harmless.txt has no reason for %s", line)
		case !slices.ContainsFunc(all, func(m Mutant) bool { return m.Name == line }):
			return nil, fmt.Errorf("harmless.txt lists mutants that no longer exist: %s", line)
		default:
			names[line] = true
		}
	}
	return names, nil
}

// tryAll tries each mutant and prints its result. It appends the results to the file that the
// parameter "done" names, unless "done" is empty. It skips the mutants whose results the file
// already contains, so a second run can continue an interrupted run.
func tryAll(ctx context.Context, root string, all []Mutant, coverage, done string) (results []result, err error) {
	names := map[string]bool{}
	for _, m := range all {
		names[m.Name] = true
	}
	before, log, err := openResults(done)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for _, r := range before {
		if names[r.Mutant] {
			results = append(results, r)
			delete(names, r.Mutant)
		}
	}
	all = slices.DeleteFunc(all, func(m Mutant) bool { return !names[m.Name] })
	if len(all) == 0 {
		return results, nil
	}
	tmp, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return results, err
	}
	defer os.RemoveAll(tmp)
	seen, err := readWitnesses(ctx, root, tmp, coverage)
	if err != nil {
		return results, err
	}
	t := &trial{root: root, tmp: tmp, seen: seen}
	var mu sync.Mutex
	var tried int
	parallel(all, func(_ int, m Mutant) {
		if ctx.Err() != nil {
			return
		}
		r, failed := t.try(ctx, m)
		mu.Lock()
		defer mu.Unlock()
		tried++
		if failed != nil {
			err = errors.Join(err, failed)
			return
		}
		results = append(results, r)
		fmt.Fprintf(os.Stderr, "%d/%d %-9s %s  [%s]\n", tried, len(all), r.Outcome, r.Mutant, r.By)
		err = errors.Join(err, json.NewEncoder(log).Encode(r))
	})
	return results, errors.Join(err, ctx.Err())
}

// openResults returns the results that an earlier run has written to the named file, and
// opens the file for further results.
func openResults(name string) ([]result, io.WriteCloser, error) {
	if name == "" {
		return nil, nowhere{io.Discard}, nil
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	var before []result
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
		}
		before = append(before, r)
	}
	return before, f, lines.Err()
}

type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }

// report writes a table with a line for each package. Below the table, it lists the mutants that
// survived, and those that no test reaches. It returns an error if less than the percentage "least"
// of all mutants were killed.
func report(out io.Writer, results []result, least float64) error {
	columns := []outcome{killed, timedOut, known, survived, unseen, invalid}
	counts := map[string]map[outcome]int{"all": {}}
	for _, r := range results {
		if counts[r.Package] == nil {
			counts[r.Package] = map[outcome]int{}
		}
		counts[r.Package][r.Outcome]++
		counts["all"][r.Outcome]++
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "package\t")
	for _, o := range columns {
		fmt.Fprint(table, o, "\t")
	}
	fmt.Fprintln(table, "killed of all\t")
	for _, p := range append(slices.DeleteFunc(slices.Clone(packages), func(p string) bool { return counts[p] == nil }), "all") {
		fmt.Fprint(table, p, "\t")
		for _, o := range columns {
			fmt.Fprint(table, counts[p][o], "\t")
		}
		fmt.Fprintf(table, "%.1f %%\t\n", percentKilled(counts[p]))
	}
	err := table.Flush()
	slices.SortFunc(results, func(a, b result) int { return strings.Compare(a.Mutant, b.Mutant) })
	for _, r := range results {
		if r.Outcome == survived || r.Outcome == unseen {
			fmt.Fprintf(out, "%s: %s\n", r.Outcome, r.Mutant)
		}
	}
	if share := percentKilled(counts["all"]); share < least {
		err = errors.Join(err, fmt.Errorf("%.1f %% were killed, and %.0f %% are asked for", share, least))
	}
	return err
}

// percentKilled returns the percentage of killed mutants among all mutants that compile. A mutant
// that survived, and that harmless.txt lists, counts in the total, but not as killed.
func percentKilled(n map[outcome]int) float64 {
	dead := n[killed] + n[timedOut]
	all := dead + n[known] + n[survived] + n[unseen]
	if all == 0 {
		return 100
	}
	return 100 * float64(dead) / float64(all)
}
