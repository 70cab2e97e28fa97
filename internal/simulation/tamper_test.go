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

func newTokenEveryTime(r *http.Request, body []byte) []byte {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
		return body
	}
	var in struct{ ClientRequestToken string }
	if json.Unmarshal(body, &in) != nil {
		return body
	}
	return bytes.Replace(body, []byte(in.ClientRequestToken), []byte(protocol.NewVersion()), 1)
}

func guardOnOwnerAlone(r *http.Request, body []byte) []byte {
	var in map[string]any
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") || json.Unmarshal(body, &in) != nil {
		return body
	}
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
	out, err := json.Marshal(in)
	if err != nil {
		return body
	}
	return out
}

// guardedByOne removes all checks but one from a transaction.
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

// checking removes the condition checks of keys from a transaction. It keeps the check of a
// key if keep(key) is true.
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

// renewedWhateverItShows makes the condition of a renewal hold for any version.
func renewedWhateverItShows(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.Renews, func(condition string) string {
		return anyVersion.ReplaceAllString(condition, "($0 OR attribute_exists($1))")
	})
}

var anyVersion = regexp.MustCompile(`(#?\w+) IN \([^)]*\)`)

// takenOverWhateverItShows makes the condition of a takeover hold for any version.
func takenOverWhateverItShows(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.Grants, func(condition string) string {
		return anyVersion.ReplaceAllString(condition, "($0 OR attribute_exists($1))")
	})
}

// namingOneAttempt makes a release name only the first of the versions that the record may
// show.
func namingOneAttempt(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.Releases, func(condition string) string {
		return regexp.MustCompile(`(#\w+) IN \((:\w+), ([^)]*)\)`).ReplaceAllString(condition, "($1 IN ($2) OR $1 IN ($3) AND attribute_not_exists($1))")
	})
}

// notLookingForItself makes a grant succeed even if the record already shows the id of this
// grant.
func notLookingForItself(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.Grants, func(condition string) string {
		return regexp.MustCompile(`(#\w+) <> (:\w+)`).ReplaceAllString(condition, "($0 OR $1 = $2)")
	})
}

// handedToAnybody makes a release hand the key even to a client that has left the queue.
func handedToAnybody(r *http.Request, body []byte) []byte {
	return respelled(r, body, lab.Call.HandsOver, func(condition string) string {
		return regexp.MustCompile(`(#\w+\[0\]) = :\w+`).ReplaceAllString(condition, "($0 OR attribute_exists($1))")
	})
}

// respelled applies the function change to the condition of an update. It leaves the
// request unchanged if the function is, applied to the request, returns false.
func respelled(r *http.Request, body []byte, is func(lab.Call) bool, change func(condition string) string) []byte {
	var in map[string]any
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateItem") || !is(lab.Call{Op: "UpdateItem", Body: body}) || json.Unmarshal(body, &in) != nil {
		return body
	}
	condition, _ := in["ConditionExpression"].(string)
	in["ConditionExpression"] = change(condition)
	out, err := json.Marshal(in)
	if err != nil {
		return body
	}
	return out
}
