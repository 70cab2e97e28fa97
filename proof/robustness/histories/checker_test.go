package histories

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// The function "at" returns an operation. The first two parameters are the times when the operation
// starts and ends. If the outcome is unknown, at ignores the second parameter: the operation never
// ends.
func at(from, to int64, in asked, out told) porcupine.Operation {
	if out.unknown {
		to = math.MaxInt64
	}
	return porcupine.Operation{Input: in, Call: from, Output: out, Return: to}
}

func granted(from, to, token int64) porcupine.Operation {
	return at(from, to, asked{verb: acquire, token: token}, told{token: token})
}

func permit(i int, from, to, token int64) porcupine.Operation {
	return at(from, to, asked{verb: acquire, key: i, token: token}, told{token: token})
}

func under(v verb, from, to, token int64) porcupine.Operation {
	return at(from, to, asked{verb: v, token: token}, told{})
}

func unknown(v verb, from, token int64) porcupine.Operation {
	return at(from, 0, asked{verb: v, token: token}, told{unknown: true})
}

func shows(v verb, from, to, token, n int64) porcupine.Operation {
	return at(from, to, asked{verb: v, token: token}, told{n: n})
}

func writes(at64, token int64, refused bool) porcupine.Operation {
	return at(at64, at64, asked{verb: write, token: token}, told{refused: refused})
}

func of(ops ...porcupine.Operation) []porcupine.Operation { return ops }

// modelled contains operations and the model of the lock or semaphore that they use.
type modelled struct {
	model porcupine.Model
	ops   []porcupine.Operation
}

// If the checker accepted an impossible history, a test would miss a violation. So the
// checker must reject all these histories.
func TestCheckerRejectsImpossibleHistory(t *testing.T) {
	two := semaphoreModel()
	lab.Variants(t, map[string]modelled{
		"two holders at once":                     {lockModel, of(granted(0, 10, 1), granted(20, 30, 2), under(end, 40, 40, 1))},
		"two holders, the first never ends":       {lockModel, of(granted(0, 10, 1), granted(20, 30, 2))},
		"a token that decreases":                  {lockModel, of(granted(0, 10, 5), under(end, 20, 20, 5), granted(30, 40, 4))},
		"a token that is granted twice":           {lockModel, of(granted(0, 10, 5), under(end, 20, 20, 5), granted(30, 40, 5))},
		"an end of trust without a grant":         {lockModel, of(granted(0, 10, 1), under(end, 20, 20, 2))},
		"a commit of a stale grant":               {lockModel, of(granted(0, 10, 1), under(end, 20, 20, 1), granted(30, 40, 2), under(commit, 50, 60, 1), shows(look, 90, 91, 0, 1))},
		"a commit of a released grant":            {lockModel, of(granted(0, 10, 1), under(end, 20, 20, 1), under(release, 20, 30, 1), under(commit, 50, 60, 1), shows(look, 90, 91, 0, 1))},
		"a commit applied twice":                  {lockModel, of(granted(0, 10, 1), under(commit, 20, 30, 1), shows(look, 90, 91, 0, 2))},
		"a commit without effect":                 {lockModel, of(granted(0, 10, 1), under(commit, 20, 30, 1), shows(look, 90, 91, 0, 0))},
		"a failed commit with effect":             {lockModel, of(granted(0, 10, 1), shows(look, 90, 91, 0, 1))},
		"an unknown commit applied twice":         {lockModel, of(granted(0, 10, 1), unknown(commit, 20, 1), shows(look, 90, 91, 0, 2))},
		"an unknown commit applied after release": {lockModel, of(granted(0, 10, 1), under(end, 20, 20, 1), under(release, 20, 25, 1), unknown(commit, 30, 1), shows(look, 90, 91, 0, 1))},
		"a read of an old count":                  {lockModel, of(granted(0, 10, 1), under(commit, 20, 30, 1), shows(read, 40, 50, 1, 0))},
		"a read of a stale grant":                 {lockModel, of(granted(0, 10, 1), under(end, 20, 20, 1), granted(30, 40, 2), shows(read, 50, 60, 1, 0))},
		"a stale write that is accepted":          {lockModel, of(granted(0, 10, 1), under(end, 20, 20, 1), granted(30, 40, 2), writes(50, 2, false), writes(60, 1, false))},
		"a holder's write that is refused":        {lockModel, of(granted(0, 10, 1), writes(20, 1, true))},
		"a write with a token of no grant":        {lockModel, of(granted(0, 10, 1), writes(20, 2, false))},
		"two holders of one permit":               {two, of(permit(0, 0, 10, 1), permit(0, 20, 30, 2))},
		"a permit's token that decreases":         {two, of(permit(1, 0, 10, 5), at(20, 20, asked{verb: end, key: 1, token: 5}, told{}), permit(1, 30, 40, 4))},
	}, func(t *testing.T, h modelled) {
		t.Setenv("TMPDIR", t.TempDir()) // the checker visualizes a rejected history in a file in TMPDIR
		p := problem(h.model, h.ops)
		if p == "" {
			t.Fatal("accepted")
		}
		lab.WantParts(t, "the problem", p, "no correct lock returns these results (Illegal)", "visualized in /")
	})
}

// If the checker rejected a possible history, a test would report a violation that does not
// exist. So the checker must accept all these histories.
func TestCheckerAcceptsPossibleHistory(t *testing.T) {
	two := semaphoreModel()
	lab.Variants(t, map[string]modelled{
		"one after the other":                    {lockModel, of(granted(0, 10, 1), under(end, 20, 20, 1), granted(5, 30, 2))},
		"tokens with gaps":                       {lockModel, of(granted(0, 10, 1), under(end, 20, 20, 1), granted(30, 40, 7))},
		"a commit after trust":                   {lockModel, of(granted(0, 10, 1), under(end, 20, 20, 1), under(commit, 15, 30, 1), shows(look, 90, 91, 0, 1))},
		"an unknown commit with effect":          {lockModel, of(granted(0, 10, 1), unknown(commit, 20, 1), shows(look, 90, 91, 0, 1))},
		"an unknown commit without effect":       {lockModel, of(granted(0, 10, 1), unknown(commit, 20, 1), shows(look, 90, 91, 0, 0))},
		"a stale write before the next holder's": {lockModel, of(granted(0, 10, 1), under(end, 20, 20, 1), granted(30, 40, 2), writes(50, 1, false), writes(60, 2, false), writes(70, 1, true))},
		"all permits held at once":               {two, of(permit(0, 0, 10, 1), permit(1, 0, 12, 1))},
	}, func(t *testing.T, h modelled) {
		lab.Want(t, "problem", problem(h.model, h.ops), "")
	})
}

// Each case adds one defect to the lock, and runs random histories until the checker rejects one.
// The checker reads no records. The simulation finds the defects that only records show, such as a
// commit whose condition compares only the owner.
func TestCheckerRejectsHistoriesOfDefectiveLockCode(t *testing.T) {
	lab.SkipUnderRace(t, "the race detector makes this test five times as slow")
	type variant struct {
		how   sharing
		model porcupine.Model
	}
	lab.Variants(t, map[string]variant{
		"grants of a held key":                      {mutexes.tampered(unconditionalGrants), lockModel},
		"tokens that do not increase":               {mutexes.tampered(tokensThatStay), lockModel},
		"trust by a clock at half speed":            {mutexes.slow(), lockModel},
		"a guard on the record's existence":         {mutexes.tampered(noGuard), lockModel},
		"a new idempotency token for every request": {mutexes.tampered(newTokenEveryTime), lockModel},
		"grants of a held permit":                   {semaphores.tampered(unconditionalGrants), semaphoreModel()},
	}, func(t *testing.T, v variant) {
		for seed := uint64(1); seed <= 3000; seed++ {
			ops := play(t, seed, v.how).operations()
			if porcupine.CheckOperationsTimeout(v.model, ops, undecided) == porcupine.Illegal {
				t.Logf("seed %d:\n\t%s", seed, strings.Join(lines(ops), "\n\t"))
				return
			}
		}
		t.Error("the checker accepted every history")
	})
}

func (s sharing) tampered(tamper func(op string, body []byte) []byte) sharing {
	s.tamper = tamper
	return s
}

// slow makes the clock of one process run at half speed. The rates of the clocks then differ by
// more than leasehold tolerates.
func (s sharing) slow() sharing {
	s.slowest = 0.5
	return s
}

// tampering is an HTTP client that modifies requests before it sends them.
type tampering struct {
	to     *lab.Wire
	tamper func(op string, body []byte) []byte
}

func (t tampering) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body = t.tamper(op, body)
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return t.to.Do(r)
}

// unconditionalGrants changes each request that grants a key so that its condition is always true.
func unconditionalGrants(op string, body []byte) []byte {
	if !(lab.Call{Op: op, Body: body}).Grants() {
		return body
	}
	return bytes.ReplaceAll(body, []byte(`"ConditionExpression":"`), []byte(`"ConditionExpression":"attribute_exists(#0) OR attribute_not_exists(#0) OR `))
}

// tokensThatStay changes each request that grants a key so that it does not increment the token.
func tokensThatStay(op string, body []byte) []byte {
	var in map[string]any
	added := regexp.MustCompile(`if_not_exists\(#\d+, :\d+\) \+ (:\d+)`).FindSubmatch(body)
	if op != "UpdateItem" || added == nil || json.Unmarshal(body, &in) != nil {
		return body
	}
	in["ExpressionAttributeValues"].(map[string]any)[string(added[1])] = map[string]any{"N": "0"}
	out, _ := json.Marshal(in) // cannot fail, because the value was parsed from JSON
	return out
}

func newTokenEveryTime(_ string, body []byte) []byte {
	var in struct{ ClientRequestToken string }
	if json.Unmarshal(body, &in) != nil || in.ClientRequestToken == "" {
		return body
	}
	return bytes.Replace(body, []byte(in.ClientRequestToken), []byte(protocol.NewVersion()), 1)
}

// noGuard changes each commit so that it only requires that the lock record exists.
func noGuard(op string, body []byte) []byte {
	var in map[string]any
	if op != "TransactWriteItems" || json.Unmarshal(body, &in) != nil {
		return body
	}
	items, _ := in["TransactItems"].([]any)
	for _, item := range items {
		if check, ok := item.(map[string]any)["ConditionCheck"].(map[string]any); ok {
			check["ConditionExpression"], check["ExpressionAttributeNames"] = "attribute_exists(#key)", map[string]any{"#key": "key"}
			delete(check, "ExpressionAttributeValues")
		}
	}
	out, _ := json.Marshal(in) // cannot fail, because the value was parsed from JSON
	return out
}
