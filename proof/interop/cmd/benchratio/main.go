// Command benchratio reads the output of go test -bench, and prints it unchanged. Then it prints
// a comparison of localdynamo with dynoxide: for each number of workers, the median speeds of
// both, and their ratio.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"text/tabwriter"
)

const method = `
Median of each benchmark's runs. One operation is one conditional UpdateItem,
sent by the AWS SDK; every worker renews a key of its own. localdynamo answers
in the process, dynoxide over loopback; both keep their tables in memory, and
both ran on this machine, one after the other.
`

// line matches the result of a benchmark: the server, the number of workers and the
// nanoseconds per operation.
var line = regexp.MustCompile(`^Benchmark\w+/(memory|dynoxide)/(\d+)\S*\s+\d+\s+([\d.]+) ns/op`)

func main() {
	if err := compare(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "benchratio:", err)
		os.Exit(1)
	}
}

func compare(in io.Reader, out io.Writer) error {
	runs := map[string]map[int][]float64{"memory": {}, "dynoxide": {}} // nanoseconds per operation, by server and number of workers
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fmt.Fprintln(out, lines.Text())
		m := line.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		workers, err := strconv.Atoi(m[2])
		if err != nil {
			return err
		}
		took, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return err
		}
		runs[m[1]][workers] = append(runs[m[1]][workers], took)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return report(out, runs)
}

func report(out io.Writer, runs map[string]map[int][]float64) error {
	var all []int
	for workers := range runs["memory"] {
		if len(runs["dynoxide"][workers]) > 0 {
			all = append(all, workers)
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("no benchmark ran over both servers")
	}
	slices.Sort(all)
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "workers\truns\tlocaldynamo op/s\tdynoxide op/s\tratio\t")
	for _, workers := range all {
		ours, theirs := median(runs["memory"][workers]), median(runs["dynoxide"][workers])
		fmt.Fprintf(table, "%d\t%d\t%.0f\t%.0f\t%.1f\t\n",
			workers, len(runs["memory"][workers]), 1e9/ours, 1e9/theirs, theirs/ours)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, method)
	return err
}

// median returns the median of values. For an even number of values it returns the larger
// of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
