//go:build linux

package main

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/lab"
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
		lab.Want(t, "libraries of "+names, strings.Join(got, "; "), want)
	}
	lab.Want(t, "number of contenders without the flag", len((options{}).playing()), len(contest.Contenders()))
}

func TestBenchRejectsInvalidArgument(t *testing.T) {
	for _, args := range [][]string{
		{"-engine", "none"}, {"-scenarios", "none"}, {"-contenders", "none"}, {"-from", "no such file"}, {"cycle"},
	} {
		lab.WantText(t, "bench "+strings.Join(args, " "), do(t.Context(), args), args[len(args)-1])
	}
}
