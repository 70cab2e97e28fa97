//go:build linux

package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestProtocolPageListsEveryRuleWithItsModel(t *testing.T) {
	page := lab.Must(os.ReadFile("../../docs/internals/protocol.md"))(t)
	_, section, _ := strings.Cut(string(page), "\n## Rules\n")
	section, _, _ = strings.Cut(section, "\n## ")
	row := regexp.MustCompile("(?m)^\\| (.+?) \\| (\\w+) \\| `(\\w+)` \\|")
	listed := map[string]bool{}
	for _, r := range row.FindAllStringSubmatch(section, -1) {
		listed[fmt.Sprintf("%s: %s: %s", r[2], r[3], r[1])] = true
	}
	models := lab.Must(Models("."))(t)
	modelled := map[string]bool{}
	for _, m := range models {
		for _, r := range m.Rules {
			modelled[fmt.Sprintf("%s: %s: %s", m.Name, r.Name, strings.TrimSuffix(r.Text, "."))] = true
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(modelled)) {
		lab.Want(t, "docs/internals/protocol.md lists "+rule, listed[rule], true)
	}
	for _, rule := range slices.Sorted(maps.Keys(listed)) {
		lab.Want(t, "a model can omit the listed "+rule, modelled[rule], true)
	}
}

func TestEveryModelRuleHasMacroAndEveryMacroHasRule(t *testing.T) {
	models := lab.Must(Models("."))(t)
	named := map[string]bool{}
	for _, m := range models {
		for _, r := range m.Rules {
			named[r.Name] = true
		}
	}
	files := lab.Must(os.ReadDir("."))(t)
	used := map[string]bool{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".pml") && !strings.HasSuffix(f.Name(), ".h") {
			continue
		}
		text := lab.Must(os.ReadFile(f.Name()))(t)
		for _, v := range regexp.MustCompile(`\bWITHOUT_(\w+)`).FindAllStringSubmatch(string(text), -1) {
			used[v[1]] = true
			lab.Want(t, f.Name()+": a model has a rule for WITHOUT_"+v[1], named[v[1]], true)
		}
	}
	for rule := range named {
		lab.Want(t, "a model can omit "+rule, used[rule], true)
	}
}

func TestModelsSatisfyInvariantsOnlyWithAllRules(t *testing.T) {
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

const summary = `
(Spin Version 6.5.2 -- 6 December 2019)

Full statespace search for:
	never claim         	- (none specified)
	assertion violations	+

State-vector 112 byte, depth reached 85, errors: 0
   572545 states, stored
  1794101 states, matched
`

func TestSpinOutputIsParsedIntoReport(t *testing.T) {
	lab.Want(t, "report", lab.Must(Read(summary))(t), Report{Verdict: Holds, States: 572545, Depth: 85})
	large := strings.Replace(summary, "572545", "1.2345678e+08", 1)
	lab.Want(t, "states", lab.Must(Read(large))(t).States, 123456780)
	broken := "pan:1: assertion violated  !((a==1)) (at depth 12)\npan: wrote grant.pml.trail\n" +
		"Warning: Search not completed\n" + strings.Replace(summary, "errors: 0", "errors: 1", 1)
	if r, err := Read(broken); err != nil || r.Verdict != Refuted || r.Why != "assertion violated  !((a==1))" {
		t.Errorf("%+v, %v", r, err)
	}
	never := "pan:1: acceptance cycle (at depth 55)\npan: wrote grant.pml.trail\n" +
		"Warning: Search not completed\n" + strings.Replace(summary, "errors: 0", "errors: 1", 1)
	lab.Want(t, "verdict", lab.Must(Read(never))(t).Verdict, Refuted)
}

func TestSpinOutputWithoutVerdictIsRejected(t *testing.T) {
	failing := strings.Replace(summary, "errors: 0", "errors: 1", 1)
	for name, out := range map[string]string{
		"no output":              "",
		"no summary":             "pan: elapsed time 3 seconds\n",
		"too deep":               "error: max search depth too small\n" + summary,
		"too large":              "pan: reached -DMEMLIM bound\n" + summary,
		"no memory":              "pan: out of memory\n" + summary,
		"stopped":                "Interrupted\n" + summary,
		"not completed":          "Warning: Search not completed\n" + summary,
		"not exhaustive":         strings.Replace(summary, "Full statespace search", "Bit statespace search", 1),
		"a broken model":         "pan:1: assertion violated - invalid array index (at depth 3)\n" + failing,
		"a deadlock":             "pan:1: invalid end state (at depth 3)\n" + failing,
		"an unexplained error":   failing,
		"refuted without errors": "pan:1: assertion violated (x) (at depth 3)\n" + summary,
	} {
		if r, err := Read(out); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
