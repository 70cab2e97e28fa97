//go:build linux

package main

import "testing"

func TestModelsSatisfyInvariantsOnlyWithEveryRule(t *testing.T) {
	more, err := moreBounds()
	if err != nil {
		t.Fatal(err)
	}
	models, err := Models(".")
	if err != nil {
		t.Fatal(err)
	}
	checker, err := NewChecker(t.Context(), ".", more)
	if err != nil {
		t.Fatal(err)
	}
	checker.All(t.Context(), Searches(models), func(r Result) {
		if r.Err != nil {
			t.Error(r.Err)
			return
		}
		t.Logf("%s: %s, %d states, depth %d, %s", r.Search, r.Verdict, r.States, r.Depth, r.Took)
	})
}
