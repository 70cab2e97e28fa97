package protocol

import (
	"bytes"
	"maps"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Changes are the changes that a write makes to the caller's data and attributes in a
// record. Data and attributes that Changes does not contain keep their values.
type Changes struct {
	SetData     bool
	Data        []byte // new data if SetData is true; nil removes the data
	InitialData []byte // data that a grant stores if the record has no data
	Attributes  Item   // new values by attribute name; a nil value removes the attribute
}

// None reports whether c changes neither data nor attributes.
func (c Changes) None() bool { return !c.SetData && c.InitialData == nil && len(c.Attributes) == 0 }

// In reports whether r already has the data and the attributes that c would write.
func (c Changes) In(r Record) bool {
	if c.SetData && ((c.Data == nil) != (r.Data == nil) || !bytes.Equal(c.Data, r.Data)) {
		return false
	}
	if !c.SetData && c.InitialData != nil && r.Data == nil {
		return false
	}
	for name, v := range c.Attributes {
		if v == nil && r.Attributes[name] != nil || v != nil && !reflect.DeepEqual(v, r.Attributes[name]) {
			return false
		}
	}
	return true
}

// LeaveData reports whether r would contain data or attributes of the caller after the
// changes in c.
func (c Changes) LeaveData(r Record) bool {
	if c.Data != nil || r.Data != nil && !c.SetData {
		return true
	}
	after := Item{}
	maps.Copy(after, r.Attributes)
	maps.Copy(after, c.Attributes)
	maps.DeleteFunc(after, func(_ string, v types.AttributeValue) bool { return v == nil })
	return len(after) > 0
}
