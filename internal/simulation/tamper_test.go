package simulation

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

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

// guardedByOne removes all condition checks except the first one from a
// transaction.
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

// checking removes condition checks from a transaction, unless keep returns true for the
// key that they check.
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

// renewedWhateverItShows makes the condition of a renewal hold for any version
// in the record.
func renewedWhateverItShows(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.Renews, anyVersion, "($0 OR attribute_exists($1))")
}

// takenOverWhateverItShows makes the condition of a takeover hold for any
// version in the record.
func takenOverWhateverItShows(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.Grants, anyVersion, "($0 OR attribute_exists($1))")
}

// namingOneAttempt changes the condition of a release. Of the versions that the record may
// contain, the condition then accepts only the first one.
func namingOneAttempt(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.Releases, severalOf, "($1 IN ($2) OR $1 IN ($3) AND attribute_not_exists($1))")
}

// notLookingForItself changes the condition of a grant. The grant is then applied even if
// the record already contains the id of this grant.
func notLookingForItself(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.Grants, differs, "($0 OR $1 = $2)")
}

// handedToAnybody changes the condition of a hand-over: the key is then handed
// even to a client that has left the queue.
func handedToAnybody(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.HandsOver, isHead, "($0 OR attribute_exists($1))")
}

// respelled replaces a part of the condition of an update. It changes only requests for
// which is returns true.
func respelled(r *http.Request, body []byte, is func(lab.Call) bool, part *regexp.Regexp, by string) []byte {
	if !asksFor(r, "UpdateItem") || !is(lab.Call{Op: "UpdateItem", Body: body}) {
		return body
	}
	return edited(body, func(in map[string]any) {
		condition, _ := in["ConditionExpression"].(string)
		in["ConditionExpression"] = part.ReplaceAllString(condition, by)
	})
}
