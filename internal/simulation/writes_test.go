package simulation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// writes contains a history of each key, which the models of proof/spec check. The models have
// their own conditions and notion of time, so a history contains neither. It has these lines:
//
//	sends PROCESS ATTEMPT KIND LEASE PLACE ENTRY GRANT...   a process sends a request
//	meets ATTEMPT applied|refused RECORD                    the request arrives at the record
//	hears PROCESS ATTEMPT RECORD                            a reply shows the record
//	believes PROCESS GRANT                                  a process begins to trust a grant
//	doubts PROCESS GRANT                                    a process stops trusting a grant
//
// The words in capitals mean:
//
//	KIND      operation of the request: grant, renew, release, handover (to another goroutine of
//	          the same client), head (a hand-over to the head of the record's queue), join, leave,
//	          guard or read
//	LEASE     "short" if the lease is shorter than usualLease, and otherwise "-"
//	PLACE     index of the queue entry that the request removes; "all" if it removes the whole
//	          queue, and "-" if it removes no entry
//	ENTRY     version of the queue entry that the request removes; "-" if it removes no single entry
//	GRANT...  the grant that the request creates, if any, and then the grants that it acts on
//	RECORD    version and grant of the record, "held" or "free", and the queue; "-" if there is no
//	          record
type writes struct {
	lines map[string][]string     // lines of the history of each key, by key
	logs  map[string]int          // length of the log of each key, by key
	asks  map[*request][]ask      // operations that a request contains, by request
	names map[string]string       // short name of each random id, by id
	trust map[*belief]bool        // beliefs that have begun and not yet ended in the history
	known map[[2]string]bool      // attempts that the history contains already; each is a pair of key and attempt
	last  map[string]attributeMap // record of each key as it is in the table, by key
}

// ask is an operation of a request on one key. A transaction may contain several operations.
type ask struct {
	key, attempt, kind, lease, place, entry string
	grants                                  []string
	index                                   int // index of the operation's item in its transaction
}

func newWrites() *writes {
	return &writes{
		lines: map[string][]string{}, logs: map[string]int{}, asks: map[*request][]ask{}, names: map[string]string{},
		trust: map[*belief]bool{}, known: map[[2]string]bool{}, last: map[string]attributeMap{},
	}
}

func (w *writes) enter(key, format string, args ...any) {
	w.lines[key] = append(w.lines[key], fmt.Sprintf(format, args...))
}

// name returns a short name for a random id: a number in the order of first use. So the name
// is the same in every run of a seed.
func (w *writes) name(id string) string {
	if w.names[id] == "" {
		w.names[id] = "#" + strconv.Itoa(len(w.names)+1)
	}
	return w.names[id]
}

func (w *writes) namesOf(ids []string) string {
	names := ""
	for _, id := range ids {
		names += " " + w.name(id)
	}
	return names
}

func (w *writes) record(item attributeMap) string {
	if item == nil {
		return "-"
	}
	state := "held"
	if item.text("isReleased") == "1" {
		state = "free"
	}
	return fmt.Sprintf("%s %s %s%s", w.name(item.text("recordVersionNumber")), w.name(item.text("grantId")), state, w.namesOf(item.waiters()))
}

// wrote adds a line "sends" for request r to the history of each key that r reads or writes. The
// caller must hold c.mu.
func (c *checker) wrote(r *request) {
	if c.writes == nil {
		return
	}
	w := c.writes
	asks := c.asksOf(r)
	w.asks[r] = asks
	for _, a := range asks {
		c.doubted(a.key)
		// The history contains each attempt once. If a later request has the same a.attempt, it
		// repeats a transaction under the same idempotency token.
		if this := [2]string{a.key, a.attempt}; !w.known[this] {
			w.known[this] = true
			w.enter(a.key, "sends %d %s %s %s %s %s%s", r.by.id, w.name(a.attempt), a.kind, a.lease, a.place, a.entry, w.namesOf(a.grants))
		}
	}
}

// met adds the arrival of a request, and its effect, to the history of its
// keys. The caller must hold c.mu.
func (c *checker) met(r *request, res *http.Response) {
	if c.writes == nil {
		return
	}
	w := c.writes
	for _, a := range w.asks[r] {
		if a.kind == "read" || res.StatusCode != http.StatusOK && !failed(res, a.index) {
			continue
		}
		before, now := w.last[a.key], attributesOf(c.table.Item(a.key))
		w.last[a.key] = now
		c.doubted(a.key)
		fate := "applied"
		if res.StatusCode != http.StatusOK {
			fate = "refused"
		}
		if r.Op == "TransactWriteItems" {
			logged := w.logs[a.key]
			w.logs[a.key] = len(c.table.Log(a.key))
			switch {
			case fate == "applied" && a.kind == "guard" && w.logs[a.key] == logged,
				fate == "applied" && a.kind != "guard" && (now.text("recordVersionNumber") == before.text("recordVersionNumber")):
				continue // not recorded: this arrival repeats a transaction under the same idempotency token
			}
		}
		w.enter(a.key, "meets %s %s %s", w.name(a.attempt), fate, w.record(now))
	}
}

// heard adds the records that a reply shows to the history of their keys. The
// caller must hold c.mu.
func (c *checker) heard(r *request, status int, body []byte) {
	if c.writes == nil || r.Op == "TransactWriteItems" {
		return
	}
	var out struct {
		Type             string `json:"__type"`
		Item, Attributes attributeMap
	}
	if json.Unmarshal(body, &out) != nil || status != http.StatusOK && !strings.HasSuffix(out.Type, "ConditionalCheckFailedException") {
		return
	}
	shown := out.Item
	if shown == nil {
		shown = out.Attributes
	}
	for _, a := range c.writes.asks[r] {
		c.doubted(a.key)
		c.writes.enter(a.key, "hears %d %s %s", r.by.id, c.writes.name(a.attempt), c.writes.record(shown))
	}
}

// trusted adds a line "believes" to the history of a key: process b.by begins to trust the grant
// b.grant. The caller must hold c.mu.
func (c *checker) trusted(b *belief) {
	if c.writes == nil {
		return
	}
	key := b.lock.Key().Partition
	c.doubted(key)
	c.writes.trust[b] = true
	c.writes.enter(key, "believes %d %s", b.by.id, c.writes.name(b.grant))
}

// doubted adds a line "doubts" to the history of a key for each process that has stopped trusting
// its grant of the key since the last call of doubted. The caller must hold c.mu.
func (c *checker) doubted(key string) {
	for _, b := range c.beliefs {
		if c.writes != nil && c.writes.trust[b] && b.lock.Key().Partition == key && b.lock.Err() != nil {
			delete(c.writes.trust, b)
			c.writes.enter(key, "doubts %d %s", b.by.id, c.writes.name(b.grant))
		}
	}
}

// failed reports whether a reply says that a condition has failed. In a transaction, only the
// condition of the item with the given index counts.
func failed(res *http.Response, index int) bool {
	var out struct {
		Type                string `json:"__type"`
		CancellationReasons []struct{ Code string }
	}
	_ = json.Unmarshal(bodyOf(res), &out)
	if index < len(out.CancellationReasons) {
		return out.CancellationReasons[index].Code == "ConditionalCheckFailed"
	}
	return strings.HasSuffix(out.Type, "ConditionalCheckFailedException")
}

// asksOf returns the operations that a request contains on the keys of locks.
func (c *checker) asksOf(r *request) (asks []ask) {
	add := func(key, kind string, body []byte, index int) {
		if slices.Contains(keyNames, key) {
			asks = append(asks, c.askOf(r, key, kind, body, index))
		}
	}
	if r.Op == "TransactWriteItems" {
		var in struct{ TransactItems []map[string]json.RawMessage }
		_ = json.Unmarshal(r.Body, &in)
		for i, item := range lab.TransactItems(r.Body) {
			switch {
			case item.ConditionCheck != nil && item.ConditionCheck.TableName == "locks":
				add(item.ConditionCheck.Key["key"].S, "guard", in.TransactItems[i]["ConditionCheck"], i)
			case item.Update != nil && item.Update.TableName == "locks":
				add(item.Update.Key["key"].S, "", in.TransactItems[i]["Update"], i)
			}
		}
		return asks
	}
	kind, ok := map[string]string{"GetItem": "read", "UpdateItem": ""}[r.Op]
	if !ok { // skipped: this request is a read of a caller's own data under the lock
		return nil
	}
	for _, key := range r.keys {
		add(key, kind, r.Body, 0)
	}
	return asks
}

// spelled is an update, decoded from JSON.
type spelled struct {
	UpdateExpression, ConditionExpression string
	ExpressionAttributeNames              map[string]string
	ExpressionAttributeValues             attributeMap
}

var (
	isSet   = regexp.MustCompile(`(#\w+) = (:\w+)`)
	isIn    = regexp.MustCompile(`(#\w+) IN \(([^)]*)\)`)
	isPlace = regexp.MustCompile(`(#\w+)\[(\d+)\]`)
	isThere = regexp.MustCompile(`(#\w+)\[\d+\] = (:\w+)`)
	isNew   = regexp.MustCompile(`contains\((#\w+), (:\w+)\)`)
)

// value returns the value that the expression "text" assigns to the named attribute or compares
// with it. The pattern matches each such assignment or comparison in the expression.
func (s spelled) value(pattern *regexp.Regexp, text, name string) map[string]any {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		if s.ExpressionAttributeNames[m[1]] == name {
			return s.ExpressionAttributeValues[m[2]]
		}
	}
	return nil
}

func (s spelled) set(name string) string {
	v, _ := s.value(isSet, s.UpdateExpression, name)["S"].(string)
	return v
}

// named returns the ids of the grants that the condition of the update contains.
func (s spelled) named() (grants []string) {
	for _, m := range isIn.FindAllStringSubmatch(s.ConditionExpression, -1) {
		if s.ExpressionAttributeNames[m[1]] != "grantId" {
			continue
		}
		for v := range strings.SplitSeq(m[2], ", ") {
			grant, _ := s.ExpressionAttributeValues[v]["S"].(string)
			grants = append(grants, grant)
		}
	}
	return grants
}

func (c *checker) askOf(r *request, key, kind string, body []byte, index int) ask {
	var s spelled
	_ = json.Unmarshal(body, &s)
	a := ask{key: key, kind: kind, attempt: fmt.Sprintf("%s %p", kind, r), lease: "-", place: "-", entry: "-", grants: s.named(), index: index}
	if of, ms := s.set("recordVersionNumber"), s.set("leaseDuration"); of != "" {
		a.attempt = of
		if n, _ := strconv.Atoi(ms); ms != "" && time.Duration(n)*time.Millisecond < usualLease {
			a.lease = "short"
		}
	}
	grant, entry := s.set("grantId"), versionOf(s.value(isThere, s.ConditionExpression, "waiters"))
	switch {
	case kind == "guard":
		for value, call := range c.commits {
			if strings.Contains(string(r.Body), `"`+value+`"`) {
				a.attempt, a.grants = "guard of "+value, []string{call.grant}
			}
		}
	case kind != "":
	case grant != "" && grant == entry:
		a.kind, a.grants = "head", append([]string{grant}, a.grants...)
	case grant != "" && (lab.Call{Op: "UpdateItem", Body: body}).HandsOver():
		a.kind, a.grants = "handover", append([]string{grant}, a.grants...)
	case grant != "":
		a.kind, a.grants = "grant", []string{grant}
	case s.set("isReleased") != "":
		a.kind = "release"
	case strings.Contains(s.UpdateExpression, "list_append("):
		a.kind, a.lease = "join", "short"
		a.attempt = versionOf(s.value(isNew, s.ConditionExpression, "waiters"))
		a.grants = []string{a.attempt}
	case entry != "":
		a.kind, a.attempt = "leave", fmt.Sprintf("leave %p", r)
	default:
		a.kind = "renew"
	}
	_, removed, _ := strings.Cut(s.UpdateExpression, "REMOVE ")
	if m := isPlace.FindStringSubmatch(removed); m != nil {
		a.place, a.entry = m[2], c.writes.name(entry)
	} else if a.kind == "grant" {
		for n := range strings.SplitSeq(removed, ", ") {
			if s.ExpressionAttributeNames[n] == "waiters" {
				a.place = "all"
			}
		}
	}
	return a
}
