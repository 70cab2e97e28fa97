//go:build linux

package main

import (
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestModelsSatisfyInvariantsOnlyWithEveryRule(t *testing.T) {
	more := lab.Must(moreBounds())(t)
	models := lab.Must(Models("."))(t)
	checker := lab.Must(NewChecker(t.Context(), ".", more))(t)
	checker.All(t.Context(), Searches(models), func(r Result) {
		if r.Err != nil {
			t.Error(r.Err)
			return
		}
		t.Logf("%s: %s, %d states, depth %d, %s", r.Search, r.Verdict, r.States, r.Depth, r.Took)
	})
}
