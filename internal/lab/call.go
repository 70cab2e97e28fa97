package lab

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Call is a decoded request to DynamoDB.
type Call struct {
	Op   string // operation of DynamoDB, such as UpdateItem
	Body []byte
}

// Ops returns the operation of each request, in order.
func Ops(calls []Call) []string {
	var out []string
	for _, c := range calls {
		out = append(out, c.Op)
	}
	return out
}

// Grants reports whether the request grants at least one key.
func (c Call) Grants() bool {
	return c.Writes("UpdateItem") && !c.Commits() && bytes.Contains(c.Body, []byte("if_not_exists"))
}

// Writes reports whether the request is a write with the given operation. For a transaction, it
// reports whether the first write has that operation.
func (c Call) Writes(op string) bool {
	parts := c.Parts()
	return len(parts) > 0 && parts[0].Op == op
}

// Parts returns the writes of a transaction, each as a Call. If the request is not a
// transaction, Parts returns the request itself.
func (c Call) Parts() []Call {
	if c.Op != "TransactWriteItems" {
		return []Call{c}
	}
	var in struct{ TransactItems []map[string]json.RawMessage }
	_ = json.Unmarshal(c.Body, &in)
	var parts []Call
	for _, item := range in.TransactItems {
		for op, body := range item {
			if op != "ConditionCheck" {
				op += "Item"
			}
			parts = append(parts, Call{op, body})
		}
	}
	return parts
}

// HandsOver reports whether the request ends the sender's own grant and grants the key to a waiter.
// It looks for a grant whose condition contains IN, but no OR. Only a hand-over has such a
// condition: with IN, it requires that the record contains the sender's own grant.
func (c Call) HandsOver() bool {
	return c.Grants() && !bytes.Contains(c.Body, []byte(" OR ")) && bytes.Contains(c.Body, []byte(" IN ("))
}

// Releases reports whether the request ends a grant of the client that sent it.
func (c Call) Releases() bool {
	if c.Commits() {
		return c.EndsLock()
	}
	return c.Writes("DeleteItem") || c.Writes("UpdateItem") && c.Parts()[0].Sets("isReleased")
}

// EndsLock reports whether the transaction updates or deletes the record of a lock, and so
// ends a grant. It returns false if the transaction only checks such records.
func (c Call) EndsLock() bool {
	for _, item := range TransactItems(c.Body) {
		if w := cmp.Or(item.Update, item.Delete); w != nil && w.TableName == "locks" {
			return true
		}
	}
	return false
}

// Guards reports whether the transaction contains a condition check of the key's record in the lock
// table "locks".
func (c Call) Guards(key string) bool {
	return slices.ContainsFunc(TransactItems(c.Body), func(i TransactItem) bool {
		return i.ConditionCheck != nil && i.ConditionCheck.TableName == "locks" && i.ConditionCheck.Key["key"].S == key
	})
}

// Commits reports whether the request is a commit: a transaction that contains writes of the
// application, or guards (condition checks of lock records). A transaction that only grants or
// releases keys is not a commit.
func (c Call) Commits() bool {
	return c.Op == "TransactWriteItems" && slices.ContainsFunc(TransactItems(c.Body), func(i TransactItem) bool {
		w := cmp.Or(i.Update, i.Delete)
		return w == nil || w.TableName != "locks"
	})
}

// Renews reports whether the request is a renewal of a lock or a session.
func (c Call) Renews() bool {
	return c.Writes("UpdateItem") && !c.Grants() && !c.Releases() && !c.Commits()
}

// Sets reports whether the update expression of the request sets the attribute with the given
// name.
func (c Call) Sets(name string) bool {
	_, sets := c.assigned(name)
	return sets
}

// NewGrant returns the id of the grant that the request makes, or "" if the request makes no
// grant.
func (c Call) NewGrant() string {
	id, _ := c.assigned("grantId")
	return id
}

// assigned reports whether the update expression of the request sets the attribute with the given
// name. It also returns the new value, or "" if the new value is not a string.
func (c Call) assigned(name string) (text string, sets bool) {
	var in struct {
		UpdateExpression          string
		ExpressionAttributeNames  map[string]string
		ExpressionAttributeValues map[string]struct{ S string }
	}
	_ = json.Unmarshal(c.Body, &in)
	set, _, _ := strings.Cut(in.UpdateExpression, " REMOVE ")
	for placeholder, n := range in.ExpressionAttributeNames {
		if _, to, found := strings.Cut(set, placeholder+" = "); n == name && found {
			value, _, _ := strings.Cut(to, ",")
			return in.ExpressionAttributeValues[value].S, true
		}
	}
	return "", false
}

// RenewsSession reports whether the request is a renewal of a session.
func (c Call) RenewsSession() bool {
	return c.Renews() && bytes.Contains(c.Body, []byte("leasehold/session/"))
}

// Reads reports whether the request reads items by their keys.
func (c Call) Reads() bool {
	return c.Op == "GetItem" || c.Op == "BatchGetItem" || c.Op == "TransactGetItems"
}

// Random matches the random parts of a request, which differ in every run: versions, and
// the ids of clients and sessions.
var Random = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[a-z2-7]{26}\b`)

// Keys returns the keys in the request, sorted. The key of a session is returned without
// the session's id, which differs in every run.
func (c Call) Keys() []string {
	type key map[string]struct{ S string }
	type named struct{ Key key }
	var in struct {
		named
		RequestItems  map[string]struct{ Keys []key }
		TransactItems []map[string]named
	}
	_ = json.Unmarshal(c.Body, &in)
	found := []key{in.Key}
	for _, table := range in.RequestItems {
		found = append(found, table.Keys...)
	}
	for _, item := range in.TransactItems {
		for _, n := range item {
			found = append(found, n.Key)
		}
	}
	var keys []string
	for _, k := range found {
		for _, name := range []string{"key", "id"} {
			if v := k[name].S; v != "" {
				keys = append(keys, Random.ReplaceAllString(v, ""))
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// Count returns how many of the calls satisfy the given predicate.
func Count(calls []Call, is func(Call) bool) int {
	n := 0
	for _, c := range calls {
		if is(c) {
			n++
		}
	}
	return n
}

// Commits returns how many of the calls are commits (see Call.Commits).
func Commits(calls []Call) int { return Count(calls, Call.Commits) }
