//go:build linux

package main

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/proof/bench/contest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBenchSelectsLibrariesByNamePrefix(t *testing.T) {
	for names, want := range map[string]string{
		"ours":             "ours; ours, tuned",
		"Java, python":     "Java; Java, tuned; python-dynamodb-lock; python-dynamodb-lock, tuned",
		"dyndb-mutex":      "dyndb-mutex; dyndb-mutex, tuned",
		"nobody":           "",
		"ours, tuned once": "ours; ours, tuned", // the comma separates two prefixes, "ours" and "tuned once"
	} {
		var got []string
		for _, c := range (options{contenders: names}).playing() {
			got = append(got, c.Name)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
	if all := (options{}).playing(); len(all) != len(contest.Contenders()) {
		t.Errorf("%d contenders without the flag, want all", len(all))
	}
}

func TestBenchRejectsInvalidArgument(t *testing.T) {
	for _, args := range [][]string{
		{"-engine", "none"}, {"-scenarios", "none"}, {"-contenders", "none"}, {"-from", "no such file"}, {"cycle"},
	} {
		if err := do(t.Context(), args); err == nil || !strings.Contains(err.Error(), args[len(args)-1]) {
			t.Errorf("%q: %v, want an error that contains the argument", args, err)
		}
	}
}
