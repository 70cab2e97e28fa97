//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

func lines(events ...string) *strings.Reader { return strings.NewReader(strings.Join(events, "\n")) }

func TestSharingtablePrintsOneRowPerScenario(t *testing.T) {
	var out strings.Builder
	lab.OK(t, show(lines(
		`{"Action":"pass","Test":"TestBoth/DynamoDB_Local/awslabs/ours_first","Elapsed":1.25}`,
		`{"Action":"pass","Test":"TestBoth/DynamoDB_Local/awslabs","Elapsed":2}`,
		`{"Action":"output","Test":"TestBoth/dynoxide/dynamolock","Output":"    x_test.go:3: nobody has it\n"}`,
		`{"Action":"skip","Test":"TestBoth/dynoxide/dynamolock"}`,
		`{"Action":"pass","Test":"TestBoth"}`,
	), &out))
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"PEER VERSION SERVER SCENARIO RESULT TOOK WHY",
		"awslabs 1.4.0 DynamoDB Local Both, ours first pass 1.2s",
		"dynamolock " + peers.Dynamolock.Version + " dynoxide Both skip 0.0s nobody has it",
	}
	lab.Want(t, "rows", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

func TestSharingtableReportsFailedTest(t *testing.T) {
	var out strings.Builder
	err := show(lines(
		`{"Action":"output","Test":"TestBoth/dynoxide/awslabs","Output":"what went wrong\n"}`,
		`{"Action":"fail","Test":"TestBoth/dynoxide/awslabs"}`,
	), &out)
	if err == nil || !strings.Contains(out.String(), "what went wrong") {
		t.Errorf("error %v, printed\n%s", err, out.String())
	}
}

func TestSharingtableRejectsInputWithoutTests(t *testing.T) {
	for _, in := range []string{"", `{"Action":"build-fail"}`} {
		lab.WantFailed(t, "show of "+in, show(lines(in), new(strings.Builder)))
	}
}
