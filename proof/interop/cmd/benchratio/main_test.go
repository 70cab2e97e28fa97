package main

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBenchratioDividesMedianTimesOfTwoServers(t *testing.T) {
	const in = `goos: linux
BenchmarkConditionalUpdate/memory/1-2     	   50000	     10000 ns/op	    9000 B/op	     100 allocs/op
BenchmarkConditionalUpdate/memory/1-2     	   50000	     20000 ns/op	    9000 B/op	     100 allocs/op
BenchmarkConditionalUpdate/memory/1-2     	   50000	     90000 ns/op	    9000 B/op	     100 allocs/op
BenchmarkConditionalUpdate/dynoxide/1-2   	   50000	    100000 ns/op	    9000 B/op	     100 allocs/op
BenchmarkConditionalUpdate/dynoxide/1-2   	   50000	     50000 ns/op	    9000 B/op	     100 allocs/op
BenchmarkConditionalUpdate/dynoxide/1-2   	   50000	     60000 ns/op	    9000 B/op	     100 allocs/op
BenchmarkConditionalUpdate/memory/32-2    	   50000	     10000 ns/op	    9000 B/op	     100 allocs/op
PASS
`
	var out strings.Builder
	lab.OK(t, compare(strings.NewReader(in), &out))
	got := out.String()
	if !strings.HasPrefix(got, in) {
		t.Errorf("the output does not begin with the input:\n%s", got)
	}
	want := []string{"1", "3", "50000", "16667", "3.0"}
	var row []string
	for l := range strings.Lines(strings.TrimPrefix(got, in)) {
		if fields := strings.Fields(l); len(fields) == len(want) && fields[0] == "1" {
			row = fields
		}
	}
	lab.Want(t, "row", strings.Join(row, " "), strings.Join(want, " "))
	lab.WantNoPart(t, "the output, which should not compare a benchmark that ran on one server", got[len(in):], "\n32 ")
}

func TestBenchratioRejectsInputWithoutBenchmarks(t *testing.T) {
	lab.WantFailed(t, "compare", compare(strings.NewReader("PASS\n"), &strings.Builder{}))
}
