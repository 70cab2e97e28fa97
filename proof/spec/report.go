//go:build linux

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Verdict is the conclusion of a search through the states of a model.
type Verdict string

// Values of Verdict. The zero Verdict means that the search did not finish, or that Read could
// not parse its output. The zero Verdict counts neither as Holds nor as Refuted.
const (
	Holds   Verdict = "holds"
	Refuted Verdict = "refuted"
)

// Report is the parsed output of a verifier that spin has generated.
type Report struct {
	Verdict Verdict
	States  int // number of states that the search has visited
	Depth   int // greatest depth that the search has reached
	Why     string
}

var (
	ran      = regexp.MustCompile(`(?m)^State-vector \d+ byte, depth reached (\d+), errors: (\d+)$`)
	states   = regexp.MustCompile(`(?m)^ *([0-9.e+]+) states, stored`)
	findings = regexp.MustCompile(`(?m)^pan:1: (.+?) \(at depth -?\d+\)$`)
	trouble  = regexp.MustCompile(`(?mi)^.*(search depth too small|not completed|out of memory|reached -DMEMLIM|interrupted|bit statespace|hash-compact|invalid array index|vectorsz|value .* truncated).*$`)
)

// Read parses the output of a verifier. It returns an error if the output contains no
// verdict.
func Read(out string) (Report, error) {
	var r Report
	if t := trouble.FindString(out); t != "" && (!strings.Contains(t, "not completed") || !findings.MatchString(out)) {
		return r, fmt.Errorf("the search is not complete: %s", strings.TrimSpace(t))
	}
	summary := ran.FindStringSubmatch(out)
	stored := states.FindStringSubmatch(out)
	if summary == nil || stored == nil || !strings.Contains(out, "Full statespace search for:") {
		return r, fmt.Errorf("the verifier printed no summary:\n%s", out)
	}
	n, err := strconv.ParseFloat(stored[1], 64) // the verifier prints a number from a million on in a form such as 1.2e+06
	if err != nil {
		return r, fmt.Errorf("%q states: %w", stored[1], err)
	}
	r.States = int(n)
	r.Depth, _ = strconv.Atoi(summary[1])
	found := findings.FindStringSubmatch(out)
	switch {
	case summary[2] == "0" && found == nil:
		r.Verdict = Holds
	case summary[2] == "1" && found != nil && (strings.HasPrefix(found[1], "assertion violated ") || strings.HasPrefix(found[1], "acceptance cycle")):
		r.Verdict, r.Why = Refuted, found[1]
	default:
		return r, fmt.Errorf("the verifier found something else than a broken promise:\n%s", out)
	}
	return r, nil
}
