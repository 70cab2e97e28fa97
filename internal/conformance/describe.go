package conformance

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Describe formats a request. It omits the fields that are zero.
func Describe(r Request) string {
	v := reflect.ValueOf(r)
	name := v.Type().Name()
	switch v.Kind() {
	case reflect.Struct:
		var fields []string
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() && v.Type().Field(i).IsExported() {
				fields = append(fields, v.Type().Field(i).Name+": "+describe(f.Interface()))
			}
		}
		return name + "{" + strings.Join(fields, ", ") + "}"
	case reflect.Slice:
		var elements []string
		for i := range v.Len() {
			elements = append(elements, describe(v.Index(i).Interface()))
		}
		return name + "{" + strings.Join(elements, ", ") + "}"
	default:
		return name
	}
}

func describe(v any) string {
	switch v := v.(type) {
	case Request:
		return Describe(v)
	case []Request:
		var all []string
		for _, r := range v {
			all = append(all, Describe(r))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case Item:
		return showItem(v)
	case []Item:
		return showItems(v)
	case types.AttributeValue:
		return show(v)
	case string:
		return fmt.Sprintf("%q", v)
	default:
		return fmt.Sprintf("%v", v)
	}
}
