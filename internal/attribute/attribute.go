// Package attribute copies, checks and measures the attribute values that callers store in
// the record of a lock, and converts them to JSON.
package attribute

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/visible"
)

// Clone returns a deep copy of attributes, or nil if attributes is nil.
func Clone(attributes map[string]types.AttributeValue) map[string]types.AttributeValue {
	out := maps.Clone(attributes)
	for name, v := range out {
		out[name] = cloneValue(v)
	}
	return out
}

// cloneValue returns a deep copy of v. It returns v itself if v is nil, or has a type that DynamoDB
// does not have. Neither is ever stored: EmptyIn finds nil values before the write, and the SDK
// rejects unknown types.
func cloneValue(v types.AttributeValue) types.AttributeValue {
	if isNil(v) {
		return v
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: v.Value}
	case *types.AttributeValueMemberN:
		return &types.AttributeValueMemberN{Value: v.Value}
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: bytes.Clone(v.Value)}
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Value}
	case *types.AttributeValueMemberNULL:
		return &types.AttributeValueMemberNULL{Value: v.Value}
	case *types.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberBS:
		sets := slices.Clone(v.Value)
		for i, b := range sets {
			sets[i] = bytes.Clone(b)
		}
		return &types.AttributeValueMemberBS{Value: sets}
	case *types.AttributeValueMemberL:
		list := slices.Clone(v.Value)
		for i, e := range list {
			list[i] = cloneValue(e)
		}
		return &types.AttributeValueMemberL{Value: list}
	case *types.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: Clone(v.Value)}
	}
	return v
}

// Equal reports whether a and b are the same value to DynamoDB, whatever the form of numbers and
// the order of a set. A list or map without elements equals one whose Go value is nil. A nil
// AttributeValue, which stands for no attribute, equals only nil.
func Equal(a, b types.AttributeValue) bool {
	return reflect.DeepEqual(standard(cloneValue(a)), standard(cloneValue(b)))
}

// standard returns v in a form that is the same for all values equal to v. It may change v.
func standard(v types.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		v.Value = standardNumber(v.Value)
	case *types.AttributeValueMemberSS:
		slices.Sort(v.Value)
	case *types.AttributeValueMemberNS:
		for i, n := range v.Value {
			v.Value[i] = standardNumber(n)
		}
		slices.Sort(v.Value)
	case *types.AttributeValueMemberBS:
		slices.SortFunc(v.Value, bytes.Compare)
	case *types.AttributeValueMemberL:
		for i, e := range v.Value {
			v.Value[i] = standard(e)
		}
		v.Value = append([]types.AttributeValue{}, v.Value...)
	case *types.AttributeValueMemberM:
		all := make(map[string]types.AttributeValue, len(v.Value))
		for name, e := range v.Value {
			all[name] = standard(e)
		}
		v.Value = all
	}
	return v
}

// standardNumber returns the number s as an integer without zeros at its end, and a power of ten.
func standardNumber(s string) string {
	digits, power, found := strings.Cut(strings.ToLower(s), "e")
	n, err := strconv.Atoi(power)
	if found && err != nil {
		return s
	}
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign = "-"
	}
	whole, fraction, _ := strings.Cut(strings.TrimLeft(digits, "+-"), ".")
	all := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(all, "0")
	if short == "" {
		return "0"
	}
	return fmt.Sprintf("%s%se%d", sign, short, n-len(fraction)+len(all)-len(short))
}

// EmptyIn returns the path of a nil value inside v, such as ".name[2]", or " itself" if v is
// nil. It returns "" if v contains no nil value. For a nil value, the SDK would panic, or
// would omit the value.
func EmptyIn(v types.AttributeValue) string {
	if isNil(v) {
		return " itself"
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberL:
		for i, e := range v.Value {
			if where := EmptyIn(e); where != "" {
				return fmt.Sprintf("[%d]%s", i, strings.TrimPrefix(where, " itself"))
			}
		}
	case *types.AttributeValueMemberM:
		for _, name := range slices.Sorted(maps.Keys(v.Value)) {
			if where := EmptyIn(v.Value[name]); where != "" {
				return fmt.Sprintf(".%s%s", visible.Word(name), strings.TrimPrefix(where, " itself"))
			}
		}
	}
	return ""
}

// isNil reports whether v is nil, or a nil pointer of any type.
func isNil(v types.AttributeValue) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}

// Bytes returns the size of a value as DynamoDB counts it (Developer Guide,
// "DynamoDB item sizes and formats").
func Bytes(v types.AttributeValue) int {
	const container, element = 3, 1
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return len(v.Value)/2 + 2
	case *types.AttributeValueMemberSS:
		n := container
		for _, s := range v.Value {
			n += len(s)
		}
		return n
	case *types.AttributeValueMemberNS:
		n := container
		for _, s := range v.Value {
			n += len(s)/2 + 2
		}
		return n
	case *types.AttributeValueMemberBS:
		n := container
		for _, b := range v.Value {
			n += len(b)
		}
		return n
	case *types.AttributeValueMemberL:
		n := container
		for _, e := range v.Value {
			n += element + Bytes(e)
		}
		return n
	case *types.AttributeValueMemberM:
		n := container
		for name, e := range v.Value {
			n += element + len(name) + Bytes(e)
		}
		return n
	default: // BOOL, NULL, and nil; in a write, nil removes the attribute
		return 1
	}
}

// JSON returns attributes in the structure of DynamoDB JSON, as a value for json.Marshal.
func JSON(attributes map[string]types.AttributeValue) (map[string]any, error) {
	b, err := attributevalue.MarshalMapJSON(attributes)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	err = json.Unmarshal(b, &out)
	return out, err
}
