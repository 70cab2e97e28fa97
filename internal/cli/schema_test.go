package cli

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/cli/build"
	"github.com/leasehold-go/leasehold/internal/cli/checks"
	"github.com/leasehold-go/leasehold/internal/cli/commands/hold"
	"github.com/leasehold-go/leasehold/internal/cli/commands/repair"
	"github.com/leasehold-go/leasehold/internal/cli/demo"
	"github.com/leasehold-go/leasehold/internal/cli/grants"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// fieldsOf returns the JSON names of the fields of a struct and of its embedded structs.
func fieldsOf(v any) []string {
	var names []string
	t := reflect.TypeOf(v)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			names = append(names, fieldsOf(reflect.New(f.Type.Elem()).Elem().Interface())...)
		case name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}

func TestJSONSchemaListsEveryPrintedField(t *testing.T) {
	var top struct {
		Defs map[string]struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		} `json:"$defs"`
	}
	lab.OK(t, json.Unmarshal(say.Schema, &top))
	for name, v := range map[string]any{
		"event": say.Event{}, "key": say.Key{}, "process": say.Process{}, "leader": hold.Leader{}, "finding": checks.Finding{}, "error": say.Error{},
		"step": demo.Step{}, "grant": grants.Place{}, "build": build.Info{}, "forgotten": repair.Forgotten{}, "undone": repair.Undone{},
	} {
		for _, field := range fieldsOf(v) {
			lab.Want(t, name+"."+field+" is in schema.json", top.Defs[name].Properties[field] != nil, true)
		}
	}
	for name, def := range top.Defs {
		for _, field := range def.Required {
			lab.Want(t, name+" describes the required "+field, def.Properties[field] != nil, true)
		}
	}
}
