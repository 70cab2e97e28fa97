package conformance

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is an item, a primary key, or the values of an expression's placeholders.
type Item = map[string]types.AttributeValue

// Names maps placeholders of an expression to attribute names.
type Names = map[string]string

var null = &types.AttributeValueMemberNULL{Value: true}

func str(s string) types.AttributeValue     { return &types.AttributeValueMemberS{Value: s} }
func num(s string) types.AttributeValue     { return &types.AttributeValueMemberN{Value: s} }
func bin(s string) types.AttributeValue     { return &types.AttributeValueMemberB{Value: []byte(s)} }
func boolean(b bool) types.AttributeValue   { return &types.AttributeValueMemberBOOL{Value: b} }
func strs(s ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: s} }
func nums(s ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: s} }

func bins(s ...string) types.AttributeValue {
	var set [][]byte
	for _, b := range s {
		set = append(set, []byte(b))
	}
	return &types.AttributeValueMemberBS{Value: set}
}

func list(v ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: v}
}
func dict(m Item) types.AttributeValue { return &types.AttributeValueMemberM{Value: m} }

// item returns an item that has the given attributes, and the primary key that most cases use.
func item(attributes Item) Item {
	with := Item{"pk": str("a")}
	maps.Copy(with, attributes)
	return with
}

// show formats a value as text. Equal values have the same text, because the text does not
// depend on the order of elements in a map or a set.
func show(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return fmt.Sprintf("%q", short(v.Value))
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return "b64:" + short(base64.StdEncoding.EncodeToString(v.Value))
	case *types.AttributeValueMemberBOOL:
		return fmt.Sprint(v.Value)
	case *types.AttributeValueMemberNULL:
		return "null"
	case *types.AttributeValueMemberSS:
		return "SS" + set(v.Value)
	case *types.AttributeValueMemberNS:
		return "NS" + set(v.Value)
	case *types.AttributeValueMemberBS:
		var members []string
		for _, b := range v.Value {
			members = append(members, base64.StdEncoding.EncodeToString(b))
		}
		return "BS" + set(members)
	case *types.AttributeValueMemberL:
		var elements []string
		for _, e := range v.Value {
			elements = append(elements, show(e))
		}
		return "[" + strings.Join(elements, ", ") + "]"
	case *types.AttributeValueMemberM:
		return showItem(v.Value)
	}
	return fmt.Sprintf("%T", v)
}

func showItem(m Item) string {
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fields = append(fields, name+": "+show(m[name]))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func set(members []string) string {
	return "<" + strings.Join(slices.Sorted(slices.Values(members)), ", ") + ">"
}

// short returns s, or the length and the beginning of s if s has more than 400 bytes.
func short(s string) string {
	const enough = 400
	if len(s) <= enough {
		return s
	}
	return fmt.Sprintf("%s... (%d)", s[:20], len(s))
}
