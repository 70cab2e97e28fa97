package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := flag.String("root", "../..", "the root of the module")
	only := flag.String("only", "", "mutants whose name matches this regular expression")
	sample := flag.Int("sample", 0, "number of random mutants to try; 0 for all")
	seed := flag.Uint64("seed", 1, "for -sample")
	list := flag.Bool("list", false, "list the mutants, and try none")
	least := flag.Float64("least", 85, "fail if fewer percent are killed")
	done := flag.String("done", "", "a file of results: those in it are not tried again, new ones are added")
	coverage := flag.String("coverage", "", "a file that keeps which tests run through which code; made anew if it is not there")
	flag.Parse()
	dir, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	all, err := allMutants(dir)
	if err != nil {
		return err
	}
	harmless, err := readHarmless(harmlessList, all)
	if err != nil {
		return err
	}
	chosen, err := choose(all, *only, *sample, *seed)
	if err != nil {
		return err
	}
	if *list {
		for _, m := range chosen {
			fmt.Println(m.Name)
		}
		return nil
	}
	fmt.Fprintf(os.Stderr, "%d of %d mutants, seed %d\n", len(chosen), len(all), *seed)
	results, err := tryAll(ctx, dir, chosen, *coverage, *done)
	for i, r := range results {
		if r.Outcome == survived && harmless[r.Mutant] {
			results[i].Outcome = known
		}
	}
	return errors.Join(err, report(os.Stdout, results, *least))
}

// allMutants returns the mutants of all packages in the variable "packages".
func allMutants(root string) ([]Mutant, error) {
	var all []Mutant
	for _, p := range packages {
		found, err := mutantsOf(root, p)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// choose returns the mutants that the flags -only, -sample and -seed select.
func choose(all []Mutant, only string, sample int, seed uint64) ([]Mutant, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	all = slices.DeleteFunc(all, func(m Mutant) bool { return !pattern.MatchString(m.Name) })
	if sample > 0 && sample < len(all) {
		by := rand.New(rand.NewPCG(seed, seed))
		by.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:sample]
	}
	return all, nil
}
