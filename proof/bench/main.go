//go:build linux

// Command bench compares lock libraries for DynamoDB: their speed and their cost.
// docs/internals/performance.md describes the method.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/proof/interop/engines"

	"github.com/leasehold-go/leasehold/proof/bench/contest"
	"github.com/leasehold-go/leasehold/proof/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := do(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the parsed flags.
type options struct {
	runs       int
	engine     string
	distance   time.Duration
	scenarios  string
	contenders string
	out        string
	from       string
	docs       string
}

func do(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.runs, "runs", 5, "play everything so often")
	flags.StringVar(&o.engine, "engine", engines.Dynoxide.Name, `dynoxide or "DynamoDB Local"`)
	flags.DurationVar(&o.distance, "distance", 5*time.Millisecond, "how far away the engine is: added to each round trip")
	flags.StringVar(&o.scenarios, "scenarios", "", "play these alone, by name: "+strings.Join(scenarioNames(), " "))
	flags.StringVar(&o.contenders, "contenders", "", "let those alone play whose name begins so; several by commas")
	flags.StringVar(&o.out, "out", "", "keep the results in this file, as JSON")
	flags.StringVar(&o.from, "from", "", "play nothing, and show the results in this file")
	flags.StringVar(&o.docs, "docs", "", "write results, tables and pictures into this folder of documents")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no option", flags.Arg(0))
	}
	results, err := o.results(ctx)
	if results == nil {
		return err
	}
	fmt.Println(report.Text(results))
	if o.out != "" {
		err = errors.Join(err, report.Write(o.out, results))
	}
	if o.docs != "" && err == nil { // publish no results of an interrupted contest
		err = report.Publish(o.docs, results)
	}
	return errors.Join(err, failed(results))
}

// failed prints the errors of failed runs. It returns an error if at least one run has
// failed. The results still contain the successful runs.
func failed(results *contest.Results) error {
	n := 0
	for _, run := range results.Runs {
		if run.Failed != "" {
			n++
			fmt.Fprintf(os.Stderr, "%s, %s, round %d: %s\n", run.Scenario, run.Contender, run.Round, run.Failed)
		}
	}
	if n > 0 {
		return fmt.Errorf("%d of %d runs failed", n, len(results.Runs))
	}
	return nil
}

// results reads the results from the file given by the flag -from. Without this flag, it runs the
// contest. If the contest is interrupted, the method returns the results so far and an error.
func (o options) results(ctx context.Context) (*contest.Results, error) {
	if o.from != "" {
		return report.Read(o.from)
	}
	engine, err := engines.Find(o.engine)
	if err != nil {
		return nil, err
	}
	scenarios, err := contest.Find(strings.Fields(o.scenarios)...)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	c := &contest.Contest{
		Engine: engine, Distance: o.distance, Rounds: o.runs, Scenarios: scenarios, Contenders: o.playing(),
		Progress: func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, "%6s  %s\n", time.Since(began).Truncate(time.Second), fmt.Sprintf(format, args...))
		},
	}
	if len(c.Contenders) == 0 {
		return nil, fmt.Errorf("no contender's name begins with any of %q", o.contenders)
	}
	return c.Play(ctx)
}

// playing returns the contenders whose names begin with one of the prefixes in -contenders.
func (o options) playing() (all []contest.Contender) {
	for _, one := range contest.Contenders() {
		for prefix := range strings.SplitSeq(o.contenders, ",") {
			if strings.HasPrefix(one.Name, strings.TrimSpace(prefix)) {
				all = append(all, one)
				break
			}
		}
	}
	return all
}

func scenarioNames() (names []string) {
	for _, s := range contest.Scenarios() {
		names = append(names, s.Name)
	}
	return names
}
