//go:build linux

// Command spec checks the models of the protocol, the *.pml files in this directory. It searches
// all states of each model within bounds, such as a number of attempts. The search of a complete
// model must find no violation. The search of a model without one of its rules must find a
// violation. Then the command runs the simulation, and checks its histories against another model,
// in the file history.h. This model must allow each history. The command prints the results.
//
//	go run .                       # usual bounds, as in "make check"
//	LEASEHOLD_BOUNDS=1 go run .    # larger bounds, such as one more attempt
//	LEASEHOLD_SEEDS=9000 go run .  # more seeds of the simulation
//
// The command needs spin and a C compiler. As root, it installs them from Debian's packages.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := checkAll(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "spec:", err)
		os.Exit(1)
	}
}

// checkAll runs the searches of all models, and prints a table of their results.
func checkAll(ctx context.Context, to io.Writer) error {
	more, err := moreBounds()
	if err != nil {
		return err
	}
	models, err := Models(".")
	if err != nil {
		return err
	}
	checker, err := NewChecker(ctx, ".", more)
	if err != nil {
		return err
	}
	fmt.Fprintln(to, "| model | without | states | depth | result |")
	fmt.Fprintln(to, "|---|---|---|---|---|")
	var wrong []error
	checker.All(ctx, Searches(models), func(r Result) {
		name, result := r.Model, string(r.Verdict)
		if r.InTime {
			name += ", in time"
		}
		if r.Err != nil {
			result = "FAILED"
			wrong = append(wrong, r.Err)
		}
		fmt.Fprintf(to, "| %s | %s | %d | %d | %s |\n", name, r.Without, r.States, r.Depth, result)
	})
	for _, err := range wrong {
		fmt.Fprintln(to, "\n"+err.Error())
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d searches failed", len(wrong))
	}
	return askAll(ctx, to, checker)
}

// askAll checks the histories of the simulation against the model in history.h. It prints how many
// histories there are, and how many the model refuses.
func askAll(ctx context.Context, to io.Writer, checker *Checker) (err error) {
	seeds, err := seedsAsked()
	if err != nil {
		return err
	}
	asker, err := NewAsker(ctx, checker)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, asker.Close()) }()
	histories, err := asker.Histories(ctx, seeds, "")
	if err != nil {
		return err
	}
	refused, err := asker.Refused(ctx, histories)
	if err != nil {
		return err
	}
	events := 0
	for _, h := range histories {
		events += len(h.Lines)
	}
	fmt.Fprintf(to, "\n%d seeds of the simulation: %d histories of a key, %d events, %d refused\n", seeds, len(histories), events, len(refused))
	for _, r := range refused {
		fmt.Fprintln(to, "\n"+r.String())
	}
	if len(refused) > 0 {
		return fmt.Errorf("%d histories were refused", len(refused))
	}
	return nil
}

// seedsAsked returns the number of seeds for which the simulation runs: the value of
// LEASEHOLD_SEEDS, or the default.
func seedsAsked() (int, error) {
	const usual = 1000
	text := os.Getenv("LEASEHOLD_SEEDS")
	if text == "" {
		return usual, nil
	}
	seeds, err := strconv.Atoi(text)
	if err != nil || seeds < 1 {
		return 0, fmt.Errorf("LEASEHOLD_SEEDS=%s is not a number of seeds", text)
	}
	return seeds, nil
}

// moreBounds returns the number in LEASEHOLD_BOUNDS, which is added to the bounds of the
// models.
func moreBounds() (int, error) {
	text := os.Getenv("LEASEHOLD_BOUNDS")
	if text == "" {
		return 0, nil
	}
	more, err := strconv.Atoi(text)
	if err != nil || more < 0 {
		return 0, fmt.Errorf("LEASEHOLD_BOUNDS=%s is not a number of attempts", text)
	}
	return more, nil
}
