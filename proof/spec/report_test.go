//go:build linux

package main

import (
	"strings"
	"testing"
)

const summary = `
(Spin Version 6.5.2 -- 6 December 2019)

Full statespace search for:
	never claim         	- (none specified)
	assertion violations	+

State-vector 112 byte, depth reached 85, errors: 0
   572545 states, stored
  1794101 states, matched
`

func TestFinishedSearchConfirmsOrRefutesModel(t *testing.T) {
	r, err := Read(summary)
	if err != nil || r != (Report{Verdict: Holds, States: 572545, Depth: 85}) {
		t.Errorf("%+v, %v", r, err)
	}
	large := strings.Replace(summary, "572545", "1.2345678e+08", 1)
	if r, err := Read(large); err != nil || r.States != 123456780 {
		t.Errorf("%+v, %v", r, err)
	}
	broken := "pan:1: assertion violated  !((a==1)) (at depth 12)\npan: wrote grant.pml.trail\n" +
		"Warning: Search not completed\n" + strings.Replace(summary, "errors: 0", "errors: 1", 1)
	if r, err := Read(broken); err != nil || r.Verdict != Refuted || r.Why != "assertion violated  !((a==1))" {
		t.Errorf("%+v, %v", r, err)
	}
	never := "pan:1: acceptance cycle (at depth 55)\npan: wrote grant.pml.trail\n" +
		"Warning: Search not completed\n" + strings.Replace(summary, "errors: 0", "errors: 1", 1)
	if r, err := Read(never); err != nil || r.Verdict != Refuted {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestUnfinishedSearchIsInconclusive(t *testing.T) {
	failing := strings.Replace(summary, "errors: 0", "errors: 1", 1)
	for name, out := range map[string]string{
		"no output":       "",
		"no summary":      "pan: elapsed time 3 seconds\n",
		"too deep":        "error: max search depth too small\n" + summary,
		"too large":       "pan: reached -DMEMLIM bound\n" + summary,
		"no memory":       "pan: out of memory\n" + summary,
		"stopped":         "Interrupted\n" + summary,
		"not completed":   "Warning: Search not completed\n" + summary,
		"not exhaustive":  strings.Replace(summary, "Full statespace search", "Bit statespace search", 1),
		"a broken model":  "pan:1: assertion violated - invalid array index (at depth 3)\n" + failing,
		"a deadlock":      "pan:1: invalid end state (at depth 3)\n" + failing,
		"unexplained":     failing,
		"refuted and not": "pan:1: assertion violated (x) (at depth 3)\n" + summary,
	} {
		if r, err := Read(out); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
