package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// asksFor reports whether a request is for the named operation of DynamoDB.
func asksFor(r *http.Request, op string) bool {
	return strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+op)
}

func newTokenEveryTime(r *http.Request, body []byte) []byte {
	var in struct{ ClientRequestToken string }
	if !asksFor(r, "TransactWriteItems") || json.Unmarshal(body, &in) != nil {
		return body
	}
	return bytes.Replace(body, []byte(in.ClientRequestToken), []byte(protocol.NewVersion()), 1)
}

func guardOnOwnerAlone(r *http.Request, body []byte) []byte {
	if !asksFor(r, "TransactWriteItems") {
		return body
	}
	return edited(body, func(in map[string]any) {
		items, _ := in["TransactItems"].([]any)
		for _, item := range items {
			check, ok := item.(map[string]any)["ConditionCheck"].(map[string]any)
			if !ok {
				continue
			}
			for _, clause := range strings.Split(check["ConditionExpression"].(string), " AND ") {
				name, value, _ := strings.Cut(clause, " = ")
				names, values := check["ExpressionAttributeNames"].(map[string]any), check["ExpressionAttributeValues"].(map[string]any)
				if names[name] == "ownerName" {
					check["ConditionExpression"] = clause
					check["ExpressionAttributeNames"] = map[string]any{name: names[name]}
					check["ExpressionAttributeValues"] = map[string]any{value: values[value]}
					break
				}
			}
		}
	})
}

// guardedByOne removes all condition checks except the first one from a transaction.
func guardedByOne(r *http.Request, body []byte) []byte {
	checks := 0
	return checking(r, body, func(string) bool { checks++; return checks == 1 })
}

func unguarded(r *http.Request, body []byte) []byte {
	return checking(r, body, func(string) bool { return false })
}

func guardedByNoSession(r *http.Request, body []byte) []byte {
	return checking(r, body, func(key string) bool { return !strings.HasPrefix(key, "leasehold/session/") })
}

// checking passes the key of each condition check of a transaction to the function keep. If keep
// returns false, checking removes this check.
func checking(r *http.Request, body []byte, keep func(key string) bool) []byte {
	if !asksFor(r, "TransactWriteItems") {
		return body
	}
	return edited(body, func(in map[string]any) {
		var left []any
		for i, item := range lab.TransactItems(body) {
			if item.ConditionCheck == nil || keep(item.ConditionCheck.Key["key"].S) {
				left = append(left, in["TransactItems"].([]any)[i])
			}
		}
		in["TransactItems"] = left
	})
}

var (
	anyVersion = regexp.MustCompile(`(#?\w+) IN \([^)]*\)`)
	severalOf  = regexp.MustCompile(`(#\w+) IN \((:\w+), ([^)]*)\)`)
	differs    = regexp.MustCompile(`(#\w+) <> (:\w+)`)
	isHead     = regexp.MustCompile(`(#\w+\[0\]) = :\w+`)
)

// renewedWhateverItShows makes the condition of a renewal hold for any version in the record.
func renewedWhateverItShows(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.Renews, anyVersion, "($0 OR attribute_exists($1))")
}

// takenOverWhateverItShows makes the condition of a takeover hold for any version in the record.
func takenOverWhateverItShows(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.Grants, anyVersion, "($0 OR attribute_exists($1))")
}

// namingOneAttempt changes the condition of a release, which lists the versions that the record
// may contain. The changed condition accepts only the first version in the list.
func namingOneAttempt(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.Releases, severalOf, "($1 IN ($2) OR $1 IN ($3) AND attribute_not_exists($1))")
}

// notLookingForItself changes the condition of a grant. The grant is then applied even if
// the record already contains the id of this grant.
func notLookingForItself(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.Grants, differs, "($0 OR $1 = $2)")
}

// handedToAnybody changes the condition of a hand-over. DynamoDB then hands the key even to a
// client that has left the queue.
func handedToAnybody(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.HandsOver, isHead, "($0 OR attribute_exists($1))")
}

// respelled replaces a part of the condition of an update. It changes a request only if
// affects returns true for the request.
func respelled(r *http.Request, body []byte, affects func(lab.Call) bool, part *regexp.Regexp, by string) []byte {
	if !asksFor(r, "UpdateItem") || !affects(lab.Call{Op: "UpdateItem", Body: body}) {
		return body
	}
	return edited(body, func(in map[string]any) {
		condition, _ := in["ConditionExpression"].(string)
		in["ConditionExpression"] = part.ReplaceAllString(condition, by)
	})
}

// commitCall is one call of Commit or CommitAndRelease in a run. Each call appends a different
// value.
type commitCall struct {
	key, value, grant string
	token             int64
	beside            []*leasehold.Lock // other locks whose guards are in the same transaction
	done              bool              // the call has returned
	err               error             // result of the call
}

// begin is called before a commit under the given lock, and registers the commit with the checker.
// It returns the new commitCall, and the value that the commit must append.
func (c *process) begin(lock *leasehold.Lock) (*commitCall, string) {
	c.checker.mu.Lock()
	defer c.checker.mu.Unlock()
	call := &commitCall{key: lock.Key().Partition, grant: lock.Record().Grant, token: lock.Token()}
	c.begun++
	call.value = fmt.Sprintf("%d of process %d", c.begun, c.id)
	c.commits[call.value] = call
	return call, call.value
}

func (c *process) end(call *commitCall, err error) {
	c.checker.mu.Lock()
	defer c.checker.mu.Unlock()
	call.done, call.err = true, err
}

// commit appends a value to the log of the lock's key, in a transaction that the lock guards. In
// half of the calls, the append has a condition on the log's length, and half of these conditions
// are false. The call takes at most the time "patience".
func (c *process) commit(r *worker, lock *leasehold.Lock, patience time.Duration) {
	ctx, cancel := context.WithTimeout(r.ctx(), time.Duration(r.Int64N(int64(patience))))
	defer cancel()
	// A renewal may have waited for the commit. The pause lets this renewal continue before the
	// worker's next call, in every run of a seed.
	defer c.rest(r, 5)
	call, value := c.begin(lock)
	write := lab.Note(call.key, value)
	if how := r.IntN(4); how < 2 {
		items, err := lock.Read(c.asks(ctx, "read"), []types.TransactGetItem{lab.Get(call.key)})
		if err != nil {
			c.end(call, err)
			return
		}
		length := len(lab.Log(items[0]))
		if how == 1 {
			length--
		}
		if length > 0 {
			write.Update.ConditionExpression = aws.String("size(#l) = :n")
			write.Update.ExpressionAttributeValues[":n"] = lab.Num(strconv.Itoa(length))
		}
	}
	c.end(call, lock.Commit(c.asks(ctx, "commit"), []types.TransactWriteItem{write}))
}

// committed checks what a transaction has changed in the tables. The caller must hold c.mu.
func (c *checker) committed(r *request) {
	for _, item := range lab.TransactItems(r.Body) {
		if item.Update != nil && item.Update.TableName == "work" {
			c.appended(r, item.Update.Key["id"].S)
		}
	}
	for _, item := range lab.TransactItems(r.Body) {
		for _, w := range []*lab.TransactWrite{item.Update, item.Delete} {
			if w != nil && w.TableName == "locks" {
				c.ended(r, w.Key["key"].S)
			}
		}
	}
}

// appended checks a commit that may have appended a value to the log of the key: the grant of
// the commit must be current.
func (c *checker) appended(r *request, key string) {
	was, now := c.logs[key], c.table.Log(key)
	c.logs[key] = now
	if len(now) == len(was) {
		// Nothing was appended: DynamoDB has recognized the repeated transaction by its
		// idempotency token.
		return
	}
	value := now[len(now)-1]
	c.applies(r, key, "noted "+value)
	call := c.commits[value]
	switch {
	case !c.isCurrent(key, call.grant, call.token):
		c.note("4: %s, of grant %s with token %d, was applied when %s showed %+v", value, call.grant, call.token, key, c.records[key])
	case !c.allStand(call.beside):
		c.note("4: %s, of grant %s, was applied when another lock of its commit, beside %s, was not held", value, call.grant, key)
	case call.done && call.err != nil && !errors.Is(call.err, leasehold.ErrUnknownOutcome) && !c.deleted[call.grant]:
		c.note("8: %s was applied after its commit had failed: %v", value, call.err)
	}
}

func (c *checker) allStand(locks []*leasehold.Lock) bool {
	for _, l := range locks {
		if !c.isCurrent(l.Key().Partition, l.Record().Grant, l.Token()) {
			return false
		}
	}
	return true
}

// isCurrent reports whether a grant is current, according to the record in the table.
func (c *checker) isCurrent(key, grant string, token int64) bool {
	s := c.records[key]
	return s != nil && !s.released && !c.isDead(s.session) && s.grant == grant && s.token == token
}

// ended is called after a transaction has released the lock of a key. It stores the new state of
// the key's record in c.records.
func (c *checker) ended(r *request, key string) {
	item := c.table.Item(key)
	if item == nil {
		c.applies(r, key, "deleted")
		delete(c.records, key)
		return
	}
	s := *c.records[key]
	s.version, s.released = lab.Text(item, "recordVersionNumber"), lab.Text(item, "isReleased") == "1"
	c.records[key] = &s
	c.versions[s.version] = true
	c.applies(r, key, fmt.Sprintf("%+v", s))
}

// settleCommits checks, at the end of a run, that each result of a commit agrees with the
// logs in the table. The caller must hold c.mu.
func (c *checker) settleCommits() {
	times := map[string]int{}
	for _, log := range c.logs {
		for _, value := range log {
			times[value]++
		}
	}
	for value, call := range c.commits {
		n := times[value]
		switch {
		case n > 1:
			c.note("8: %s was applied %d times", value, n)
		case !call.done:
			c.note("8: the commit of %s never returned", value)
		case call.err == nil && n == 0:
			c.note("8: %s was never applied, but its commit returned nil", value)
		case call.err != nil && n != 0 && !errors.Is(call.err, leasehold.ErrUnknownOutcome) && !c.deleted[call.grant]:
			c.note("8: %s was applied, but its commit failed: %v", value, call.err)
		}
	}
}
