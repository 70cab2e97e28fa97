package say

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Item is an item as DynamoDB JSON: on one line, its attributes in order.
func Item(item protocol.Item) ([]byte, error) {
	b, err := attributevalue.MarshalMapJSON(item)
	if err != nil {
		return nil, err
	}
	var attributes map[string]any // which are in no order
	if err := json.Unmarshal(b, &attributes); err != nil {
		return nil, err
	}
	return json.Marshal(attributes)
}

// Indented is an item's JSON for people.
func Indented(item []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, item, "", "  ") != nil {
		return item
	}
	return b.Bytes()
}

// SameItem reports whether two pieces of DynamoDB JSON show the same item. The
// members of a set have no order.
func SameItem(a, b []byte) bool {
	x, y := ordered(a), ordered(b)
	return x != nil && bytes.Equal(x, y)
}

// ordered writes JSON in one form. nil: it is none.
func ordered(raw []byte) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a float64 would make two long numbers one
	if !json.Valid(raw) || d.Decode(&v) != nil {
		return nil
	}
	orderSets(v)
	out, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return out
}

func orderSets(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			orderSets(e)
		}
	case map[string]any:
		for name, e := range v {
			orderSets(e)
			if members, ok := e.([]any); ok && slices.Contains([]string{"SS", "NS", "BS"}, name) {
				slices.SortFunc(members, func(a, b any) int { return bytes.Compare(fmt.Append(nil, a), fmt.Append(nil, b)) })
			}
		}
	}
}
