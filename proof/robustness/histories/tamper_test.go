package histories

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

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

// unconditionalGrants modifies a grant so that its condition is always true.
func unconditionalGrants(op string, body []byte) []byte {
	if !(lab.Call{Op: op, Body: body}).Grants() {
		return body
	}
	return bytes.ReplaceAll(body, []byte(`"ConditionExpression":"`), []byte(`"ConditionExpression":"attribute_exists(#0) OR attribute_not_exists(#0) OR `))
}

// tokensThatStay modifies a grant so that it does not increment the fencing token.
func tokensThatStay(op string, body []byte) []byte {
	var in map[string]any
	added := regexp.MustCompile(`if_not_exists\(#\d+, :\d+\) \+ (:\d+)`).FindSubmatch(body)
	if op != "UpdateItem" || added == nil || json.Unmarshal(body, &in) != nil {
		return body
	}
	in["ExpressionAttributeValues"].(map[string]any)[string(added[1])] = map[string]any{"N": "0"}
	out, err := json.Marshal(in)
	if err != nil {
		return body
	}
	return out
}

func newTokenEveryTime(_ string, body []byte) []byte {
	var in struct{ ClientRequestToken string }
	if json.Unmarshal(body, &in) != nil || in.ClientRequestToken == "" {
		return body
	}
	return bytes.Replace(body, []byte(in.ClientRequestToken), []byte(protocol.NewVersion()), 1)
}

// noGuard modifies a commit so that its guard only requires that the record exists.
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
	out, err := json.Marshal(in)
	if err != nil {
		return body
	}
	return out
}
