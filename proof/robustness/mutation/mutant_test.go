package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

const example = `package p

import "log/slog"

func f(a, b int, ok bool, log *slog.Logger) int {
	if a < b && ok {
		log.Warn("x")
		g()
	}
	for i := 0; i < a; i++ {
		continue
	}
	switch {
	case a == b:
		a = min(a, 2)
	case ok:
		return a - b
	}
	if !ok {
		return -1
	}
	select {
	case <-done:
	}
	return 0
}
`

func TestEveryMutationRuleGeneratesExpectedMutants(t *testing.T) {
	found := lab.Must(mutantsIn("p.go", []byte(example)))(t)
	var names []string
	for _, m := range found {
		names = append(names, strings.TrimPrefix(m.Name, "p.go f: "))
	}
	want := []string{
		"if a < b && ok { → if a < b {",
		"if a < b && ok { → if ok {",
		"if a < b && ok { → if a <= b && ok {",
		"if a < b && ok { → if a >= b && ok {",
		"without g()",
		"for i := 0; i < a; i++ { → for i := 0; i <= a; i++ {",
		"for i := 0; i < a; i++ { → for i := 0; i >= a; i++ {",
		"continue → break",
		"case ok: → case !(ok):",
		"case a == b: → case a != b:",
		"without a = min(a, 2)",
		"a = min(a, 2) → a = max(a, 2)",
		"return a - b → return a + b",
		"if !ok { → if ok {",
	}
	slices.Sort(names)
	slices.Sort(want)
	lab.Want(t, "mutants", strings.Join(names, "\n"), strings.Join(want, "\n"))
}

func TestMutantInSwitchCaseCountsAsCoveredIfSwitchRuns(t *testing.T) {
	found := lab.Must(mutantsIn("p.go", []byte(example)))(t)
	i := slices.IndexFunc(found, func(m Mutant) bool { return strings.HasPrefix(m.Name, "p.go f: case a == b") })
	if i < 0 || found[i].Line != 14 || found[i].At != 13 {
		t.Errorf("%+v", found[max(i, 0)])
	}
}

func TestMutantsDifferFromSourceAndFromEachOther(t *testing.T) {
	found := lab.Must(mutantsIn("p.go", []byte(example)))(t)
	seen := map[string]bool{}
	for _, m := range found {
		text := string(m.mutated([]byte(example)))
		if text == example || seen[text] {
			t.Errorf("%s: no change, or the change of another mutant", m.Name)
		}
		seen[text] = true
	}
}

func TestListOfHarmlessMutantsRequiresReasons(t *testing.T) {
	all := []Mutant{{Name: "a"}, {Name: "b"}}
	for list, problem := range map[string]string{
		"# it only costs time\na\nb\n": "",
		"a\n":                          "has no reason",
		"# it only costs time\n\na\n":  "has no reason",
		"# it only costs time\nc\n":    "mutants that no longer exist: c",
	} {
		_, err := readHarmless(list, all)
		if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%q: %v", list, err)
		}
	}
	real := lab.Must(allMutants("../../.."))(t)
	lab.Must(readHarmless(harmlessList, real))(t)
}

func TestMutationScoreOmitsOnlyInvalidMutants(t *testing.T) {
	lab.Want(t, "percent", percentKilled(map[outcome]int{killed: 7, timedOut: 1, survived: 1, unseen: 1, invalid: 90}), 80)
	lab.Want(t, "percent", percentKilled(map[outcome]int{killed: 3, known: 1}), 75)
}
