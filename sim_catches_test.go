package leasehold_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// The odd worlds are themselves tested: each finds what breaks the promise.
func TestTheSimulationCatchesWhatIsBrokenInOddWorlds(t *testing.T) {
	for name, tc := range map[string]struct {
		world  func(uint64) simPlan
		tamper func(*http.Request, []byte) []byte
		want   string
	}{
		"a new token for every request, in suspends":     {suspends, newTokenEveryTime, "invariant 8"},
		"a guard on the owner alone, where locks break":  {breaking, guardOnOwnerAlone, "invariant 4"},
		"a guard of one lock of several, where they do":  {breaking, guardedByOne, "invariant 4"},
		"commits that look at no session, while closing": {closing, guardedByNoSession, "invariant 4"},
		"a grant that is resumed whatever it shows":      {passingOn, renewedWhateverItShows, "invariant"},
	} {
		t.Run(name, func(t *testing.T) {
			found := ""
			for seed := uint64(1); seed <= 500 && found == ""; seed++ {
				plan := tc.world(seed)
				plan.tamper = tc.tamper
				plan.report = func(problem string) {
					if strings.HasPrefix(problem, tc.want) {
						found = fmt.Sprintf("seed %d: %s", seed, problem)
					}
				}
				simulate(t, seed, plan)
			}
			if found == "" {
				t.Errorf("no violation of %s in 500 seeds", tc.want)
			}
			t.Log(found)
		})
	}
}

// guardedByOne leaves one check in a transaction.
func guardedByOne(r *http.Request, body []byte) []byte {
	checks := 0
	return checking(r, body, func(string) bool { checks++; return checks == 1 })
}

func guardedByNoSession(r *http.Request, body []byte) []byte {
	return checking(r, body, func(key string) bool { return !strings.HasPrefix(key, "leasehold/session/") })
}

// checking leaves in a transaction the checks of keys that are kept.
func checking(r *http.Request, body []byte, keep func(key string) bool) []byte {
	var in map[string]any
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") || json.Unmarshal(body, &in) != nil {
		return body
	}
	var left []any
	for i, item := range lab.TransactItems(body) {
		if item.ConditionCheck == nil || keep(item.ConditionCheck.Key["key"].S) {
			left = append(left, in["TransactItems"].([]any)[i])
		}
	}
	in["TransactItems"] = left
	out, err := json.Marshal(in)
	if err != nil {
		return body
	}
	return out
}

// renewedWhateverItShows lets the condition of a renewal hold for any version.
func renewedWhateverItShows(r *http.Request, body []byte) []byte {
	var in map[string]any
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateItem") || !(lab.Call{Op: "UpdateItem", Body: body}).Renews() || json.Unmarshal(body, &in) != nil {
		return body
	}
	condition, _ := in["ConditionExpression"].(string)
	in["ConditionExpression"] = anyVersion.ReplaceAllString(condition, "($0 OR attribute_exists($1))")
	out, err := json.Marshal(in)
	if err != nil {
		return body
	}
	return out
}

var anyVersion = regexp.MustCompile(`(#?\w+) IN \([^)]*\)`)
