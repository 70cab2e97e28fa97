package protocol

import (
	"bytes"
	"maps"
	"reflect"
)

// Changes are changes to the caller's data and attributes. Everything else stays
// as it is.
type Changes struct {
	SetData     bool
	Data        []byte // used with SetData; nil removes the data
	InitialData []byte // stored if the record has no data; in grants only
	Attributes  Item   // a nil value removes the attribute
}

// None reports whether nothing is changed.
func (c Changes) None() bool { return !c.SetData && c.InitialData == nil && len(c.Attributes) == 0 }

// In reports whether r already has the values that the changes would write.
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

// LeaveData reports whether r has data or attributes of the caller after the changes.
func (c Changes) LeaveData(r Record) bool {
	if c.Data != nil || r.Data != nil && !c.SetData {
		return true
	}
	after := Item{}
	maps.Copy(after, r.Attributes)
	maps.Copy(after, c.Attributes)
	for _, v := range after {
		if v != nil {
			return true
		}
	}
	return false
}
