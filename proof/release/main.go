// Command release builds the files of a release, and checks the conditions for tagging a
// version. See docs/internals/releasing.md.
//
//	go run . dist -o DIR     # from the commit that is checked out
//	go run . tags v0.1.0     # may this commit be tagged as this version?
//	go run . govulncheck golang.org/x/vuln/cmd/govulncheck@VERSION
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		args = []string{"help"}
	}
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	module := flags.String("module", "../..", "`directory` of the main module")
	out := flags.String("o", "../../dist", "`directory` for the files of a release; what is in it is removed")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch {
	case args[0] == "dist" && flags.NArg() == 0:
		return dist(ctx, *module, *out)
	case args[0] == "tags" && flags.NArg() == 1:
		problems, err := tagProblems(ctx, *module, flags.Arg(0))
		for _, p := range problems {
			fmt.Fprintln(os.Stderr, p)
		}
		if err == nil && len(problems) > 0 {
			err = fmt.Errorf("%s cannot be tagged yet: see docs/internals/releasing.md", flags.Arg(0))
		}
		return err
	case args[0] == "govulncheck" && flags.NArg() == 1:
		return newVulnerabilityCheck(flags.Arg(0)).released(ctx, *module)
	}
	return fmt.Errorf("usage: release dist [-o DIR], release tags VERSION, or release govulncheck TOOL@VERSION")
}
