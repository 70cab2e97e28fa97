package behaviour_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/wire.txt anew, to be read as a diff")

// mishap is a fault that affects the first request of an operation.
type mishap struct {
	name  string
	fault lab.Fault
}

var mishaps = []mishap{
	{"answered", func(r *lab.Request) (*http.Response, error) {
		return r.Send()
	}},
	{"reply lost", lab.LoseReply},
	{"request lost", lab.Drop},
	{"server error", func(*lab.Request) (*http.Response, error) {
		return lab.Refusal(500, "InternalServerError"), nil
	}},
	{"throttled", lab.Throttled},
	{"conflict", func(r *lab.Request) (*http.Response, error) {
		return lab.Conflict(r.Call), nil
	}},
}

// The file testdata/wire.txt contains the requests of each operation, without a fault and with each
// fault in mishaps. The test fails if any of these requests has changed. After an intended change,
// rewrite the file with this command, and read the diff:
//
//	go test -run '^TestRequestsMatchRecordedTranscript$' ./internal/behaviour -rewrite
func TestRequestsMatchRecordedTranscript(t *testing.T) {
	var got strings.Builder
	record := func(of string, cfg leasehold.Config, ops []priced) {
		for _, op := range ops {
			first := map[string]string{} // maps the text of requests to the name of the first mishap that led to these requests
			for _, m := range mishaps {
				sent := transcribe(t, cfg, op, m)
				if as, ok := first[sent]; ok {
					sent = "as " + as + "\n"
				} else {
					first[sent] = m.name
				}
				fmt.Fprintf(&got, "# %s%s, %s\n%s\n", strings.ReplaceAll(op.name, "`", ""), of, m.name, sent)
			}
		}
	}
	record("", lab.Config(), operations)
	record(" under a shared lease", lab.SharedConfig(), sharedOperations)
	const file = "testdata/wire.txt"
	if *rewrite {
		lab.OK(t, os.WriteFile(file, []byte(got.String()), 0o644))
	}
	b := lab.Must(os.ReadFile(file))(t)
	want, now := strings.Split(string(b), "\n\n"), strings.Split(got.String(), "\n\n")
	for i, section := range now {
		if i >= len(want) || want[i] != section {
			recorded := "nothing"
			if i < len(want) {
				recorded = want[i]
			}
			t.Fatalf("sent:\n%s\n\nrecorded in %s:\n%s", section, file, recorded)
		}
	}
	if len(want) > len(now) {
		t.Errorf("%s has %d more operations", file, len(want)-len(now))
	}
}

// transcribe runs an operation, and applies the fault of m to the operation's first request. It
// returns the operation's requests as text.
func transcribe(t *testing.T, cfg leasehold.Config, op priced, m mishap) string {
	var b strings.Builder
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		// The times of renewals are random. The test uses a constant instead of random
		// numbers, so that every run sends the same renewals.
		p := newProcess(w.Work(), cfg, lab.Chance(func() float64 { return 0.5 }))
		before := p.before
		p.before = func() {
			before()
			// Some operations send the requests for keys x and y in either order. The fault always
			// skips the requests for y, so that it affects the same request in every run.
			p.wire.SetFault(lab.Once(func(c lab.Call) bool { return keyOf(c) != "y" }, m.fault))
		}
		op.what(w, p)
		lab.Elapse(time.Second) // let the operation's background requests be sent
		names := &pseudonyms{}
		for _, c := range byKey(p.wire.Sent()) {
			b.WriteString(names.spell(c))
		}
		_ = p.Close(context.Background())
	})
	return b.String()
}

// byKey sorts consecutive requests with the same operation by their keys, because parallel requests
// are sent in random order.
func byKey(calls []lab.Call) []lab.Call {
	for from := 0; from < len(calls); {
		to := from + 1
		for to < len(calls) && calls[to].Op == calls[from].Op && calls[from].Op != "TransactWriteItems" {
			to++
		}
		slices.SortStableFunc(calls[from:to], func(a, b lab.Call) int { return strings.Compare(keyOf(a), keyOf(b)) })
		from = to
	}
	return calls
}

// keyOf returns the partition key of a request for one record. For a session's row it
// returns "", because the session's id is random.
func keyOf(c lab.Call) string {
	var in struct {
		Key struct{ Key struct{ S string } }
	}
	_ = json.Unmarshal(c.Body, &in)
	if strings.Contains(in.Key.Key.S, "session/") {
		return ""
	}
	return in.Key.Key.S
}

// pseudonyms replaces random strings in requests with names that are the same in every run.
type pseudonyms struct{ known []string }

var (
	aVersion = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	anOwner  = regexp.MustCompile(`^test/[a-z2-7]{26}$`)
	anID     = regexp.MustCompile(`^[a-z2-7]{26}$`)
)

// The method "of" returns the name that replaces a random string. It returns any other string
// unchanged.
func (p *pseudonyms) of(s string) string {
	if prefix, id, ok := strings.Cut(s, "session/"); ok && anID.MatchString(id) {
		return prefix + "session/" + p.of(id)
	}
	if owner, id, ok := strings.Cut(s, "/"); ok && anOwner.MatchString(s) {
		return owner + "/" + p.of(id)
	}
	var kind string
	switch {
	case aVersion.MatchString(s):
		kind = "version"
	case anID.MatchString(s):
		kind = "id"
	default:
		return strconv.Quote(s)
	}
	i := slices.Index(p.known, s)
	if i < 0 {
		i = len(p.known)
		p.known = append(p.known, s)
	}
	return kind + strconv.Itoa(i+1)
}

// value returns an attribute value as text. It returns CLOCK for a number that was read from a
// clock.
func (p *pseudonyms) value(v map[string]json.RawMessage) string {
	for kind, raw := range v {
		var s string
		_ = json.Unmarshal(raw, &s)
		switch {
		case kind == "N" && len(s) >= 9 && s != maxToken:
			return "CLOCK"
		case kind == "S":
			return p.of(s)
		case kind == "B": // queue entries are binary and contain random ids
			return "ENTRY"
		case kind == "L":
			var list []map[string]json.RawMessage
			_ = json.Unmarshal(raw, &list)
			var entries []string
			for _, v := range list {
				entries = append(entries, p.value(v))
			}
			return "[" + strings.Join(entries, ", ") + "]"
		case kind == "M":
			var m map[string]map[string]json.RawMessage
			_ = json.Unmarshal(raw, &m)
			var entries []string
			for _, name := range slices.Sorted(maps.Keys(m)) {
				entries = append(entries, name+": "+p.value(m[name]))
			}
			return "{" + strings.Join(entries, ", ") + "}"
		default:
			return kind + ":" + string(raw)
		}
	}
	return "?"
}

const maxToken = "9007199254740989"

var placeholder = regexp.MustCompile(`[#:][a-z0-9]+`)

// spell returns a request as text. It replaces each placeholder of an expression with the name or
// value that the placeholder stands for.
func (p *pseudonyms) spell(c lab.Call) string {
	if c.Op == "TransactWriteItems" {
		var b strings.Builder
		var in struct{ ClientRequestToken string }
		_ = json.Unmarshal(c.Body, &in)
		fmt.Fprintf(&b, "TransactWriteItems %s\n", p.of(in.ClientRequestToken))
		for _, part := range c.Parts() {
			b.WriteString("  " + strings.ReplaceAll(strings.TrimSuffix(p.spell(part), "\n"), "\n", "\n  ") + "\n")
		}
		return b.String()
	}
	var in struct {
		TableName                                                      string
		Key, ExpressionAttributeValues, ExclusiveStartKey              map[string]map[string]json.RawMessage
		UpdateExpression, ConditionExpression, ReturnValues            string
		FilterExpression, KeyConditionExpression, ProjectionExpression string
		ExpressionAttributeNames                                       map[string]string
		ConsistentRead                                                 bool
		Item                                                           map[string]map[string]json.RawMessage
	}
	_ = json.Unmarshal(c.Body, &in)
	var key []string
	for _, v := range in.Key {
		key = append(key, p.value(v))
	}
	for _, v := range in.Item {
		key = append(key, p.value(v))
	}
	slices.Sort(key)
	s := strings.TrimSpace(c.Op + " " + in.TableName + " " + strings.Join(key, " "))
	if in.ConsistentRead {
		s += " consistently"
	}
	s += "\n"
	for _, e := range []string{in.UpdateExpression, in.ConditionExpression, in.KeyConditionExpression, in.FilterExpression} {
		if e == "" {
			continue
		}
		s += "  " + placeholder.ReplaceAllStringFunc(e, func(at string) string {
			if name, ok := in.ExpressionAttributeNames[at]; ok && aVersion.MatchString(name) { // the attribute is an entry of a map from grant ids to values
				return p.of(name)
			} else if ok {
				return name
			}
			if v, ok := in.ExpressionAttributeValues[at]; ok {
				return p.value(v)
			}
			return at
		}) + "\n"
	}
	return s
}
