//go:build linux

// Command sharingtable reads the output of go test -json ./sharing, and prints the results as a
// table of peers, servers and scenarios. It exits 1 if a test failed, or if no test ran.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

func main() {
	if err := show(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// event is one line of the output of go test -json (see go doc test2json).
type event struct {
	Action  string
	Test    string
	Output  string
	Elapsed float64 // duration of the test in seconds
}

func show(in io.Reader, out io.Writer) error {
	printed := map[string]string{} // output of each test, by the test's name
	var ended []event
	failed := false
	for lines := json.NewDecoder(in); ; {
		var e event
		err := lines.Decode(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the output of go test -json: %w", err)
		}
		switch e.Action {
		case "output", "build-output":
			printed[e.Test] += e.Output
		case "pass", "fail", "skip", "build-fail":
			failed = failed || strings.HasSuffix(e.Action, "fail")
			ended = append(ended, e)
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PEER\tVERSION\tSERVER\tSCENARIO\tRESULT\tTOOK\tWHY")
	rows := 0
	for _, e := range ended {
		// A test name has the form Test/server/peer or Test/server/peer/role. The role is
		// "peer_first" or "ours_first": the scenario runs once with each library in the first role.
		parts := strings.Split(e.Test, "/")
		if len(parts) < 3 || hasParts(ended, e.Test) {
			continue
		}
		rows++
		scenario := strings.TrimPrefix(parts[0], "Test")
		if len(parts) > 3 {
			scenario += ", " + words(parts[3])
		}
		why := ""
		if e.Action == "skip" {
			why = reason(printed[e.Test])
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%.1fs\t%s\n", parts[2], version(parts[2]), words(parts[1]), scenario, e.Action, e.Elapsed, why)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, e := range ended {
		if strings.HasSuffix(e.Action, "fail") {
			fmt.Fprintf(out, "\n%s", printed[e.Test])
		}
	}
	switch {
	case failed:
		return errors.New("some failed")
	case rows == 0:
		return errors.New("nothing ran")
	}
	return nil
}

// reason returns the reason why a test was skipped, from the test's output. The output
// contains the reason in a line of the form file:line: reason.
func reason(printed string) string {
	for line := range strings.Lines(printed) {
		if _, text, ok := strings.Cut(line, "_test.go:"); ok {
			_, text, _ = strings.Cut(text, ": ")
			return strings.TrimSpace(text)
		}
	}
	return ""
}

// hasParts reports whether the list "ended" contains events of subtests of the test.
func hasParts(ended []event, test string) bool {
	return slices.ContainsFunc(ended, func(e event) bool { return strings.HasPrefix(e.Test, test+"/") })
}

func version(peer string) string {
	for _, p := range append(peers.All(), peers.Dynamolock) {
		if p.Name == peer {
			return p.Version
		}
	}
	return "?"
}

// words restores the spaces in the name of a subtest, which go test replaces with
// underscores.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }
