//go:build linux

package interop

import (
	"fmt"
	"testing"

	"github.com/leasehold-go/leasehold/internal/conformance"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
	"pgregory.net/rapid"
)

// TestLocaldynamoAnswersLikeDynoxide sends the same random requests to localdynamo and to dynoxide.
// It compares every reply and the final tables.
//
// The requests avoid cases in which dynoxide is known to differ from AWS: see requests_test.go.
// Error texts are not compared, because dynoxide words them differently.
func TestLocaldynamoAnswersLikeDynoxide(t *testing.T) {
	ours := conformance.Engine{Name: "localdynamo", Client: localdynamo.New().Client()}
	theirs := conformance.Engine{Name: engines.Dynoxide.Name, Client: engines.Run(t, engines.Dynoxide).Client()}
	var runs int
	rapid.Check(t, func(t *rapid.T) {
		runs++
		table := fmt.Sprintf("differential-%d", runs)
		for _, e := range []conformance.Engine{ours, theirs} {
			if err := e.CreateTable(t.Context(), table); err != nil {
				t.Fatal(err)
			}
		}
		compare := func(r conformance.Request) {
			t.Helper()
			a, b := ours.Send(t.Context(), table, r), theirs.Send(t.Context(), table, r)
			if got, want := a.Outcome(), b.Outcome(); got != want {
				t.Fatalf("%s\nlocaldynamo: %s\ndynoxide: %s", conformance.Describe(r), a, b)
			}
		}
		for range rapid.IntRange(1, 25).Draw(t, "requests") {
			compare(request.Draw(t, "request"))
		}
		compare(conformance.Scan{})
	})
}
