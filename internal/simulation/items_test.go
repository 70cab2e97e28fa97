package simulation

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// attributeMap is an item as the JSON of DynamoDB represents it.
type attributeMap map[string]map[string]any

func (m attributeMap) text(name string) string {
	s, _ := m[name]["S"].(string)
	return s
}

// waiters returns the version of each entry in the record's queue.
func (m attributeMap) waiters() (versions []string) {
	list, _ := m["waiters"]["L"].([]any)
	for _, v := range list {
		entry, _ := v.(map[string]any)
		if version := versionOf(entry); version != "" {
			versions = append(versions, version)
		}
	}
	return versions
}

// versionOf returns the version that an entry of a queue contains.
func versionOf(entry map[string]any) string {
	b, _ := entry["B"].(string)
	raw, err := base64.StdEncoding.DecodeString(b)
	if err != nil || len(raw) <= 16 {
		return ""
	}
	return protocol.VersionOfHex(hex.EncodeToString(raw[:16]))
}

func (m attributeMap) number(name string) int64 {
	s, _ := m[name]["N"].(string)
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// attributesOf returns the attributes of an item, with the types that the checker uses. It
// returns nil if item is nil.
func attributesOf(item map[string]types.AttributeValue) attributeMap {
	if item == nil {
		return nil
	}
	m := attributeMap{}
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			m[name] = map[string]any{"S": v.Value}
		case *types.AttributeValueMemberN:
			m[name] = map[string]any{"N": v.Value}
		case *types.AttributeValueMemberB:
			m[name] = map[string]any{"B": base64.StdEncoding.EncodeToString(v.Value)}
		case *types.AttributeValueMemberL:
			list := make([]any, len(v.Value))
			for i, v := range v.Value {
				list[i] = attributesOf(map[string]types.AttributeValue{"is": v})["is"]
			}
			m[name] = map[string]any{"L": list}
		case *types.AttributeValueMemberM:
			inner := map[string]any{}
			for name, v := range attributesOf(v.Value) {
				inner[name] = v
			}
			m[name] = map[string]any{"M": inner}
		}
	}
	return m
}

// attributes returns the item that the reply to an update contains.
func attributes(res *http.Response) attributeMap {
	var out struct{ Attributes attributeMap }
	_ = json.Unmarshal(bodyOf(res), &out)
	return out.Attributes
}

// bodyOf reads the body of a reply, and replaces it so that it can be read
// again.
func bodyOf(res *http.Response) []byte {
	body, _ := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

// edited decodes the JSON body of a request or a reply, calls change on the result and
// encodes it again. A body that it cannot decode is returned unchanged.
func edited[T any](body []byte, change func(T)) []byte {
	var in T
	if json.Unmarshal(body, &in) != nil {
		return body
	}
	change(in)
	out, err := json.Marshal(in)
	if err != nil {
		return body
	}
	return out
}
