package say

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// Schema is the JSON Schema of what --json prints, with the promise of what may change.
//
//go:embed schema.json
var Schema []byte

// columnsText are the columns of what is written into a pipe without --json.
const columnsText = `In a pipe, without --json, values are separated by tabs and there is no header.
Times are RFC 3339 in UTC, an unknown value is empty, and what would disturb a
line is quoted as in Go. New columns come last.

  ls               key, sort key (in a table that has one), owner, granted at,
                   lease (or expires at, in layouts that store that instead),
                   token; state with --all; live, dead or unknown with --check
  ls --watch       time, and the columns of ls --all; the state may be deleted
  get              the name of a field, its value
  elect --watch    time, owner, value, token
  doctor, table check
                   state, what was checked, what was found, what to do
  table rewrite    result, key, what the library cannot read, by whom it is held
  acquire, renew   the grant as JSON
`

// schemaObject is one of the schema's objects.
type schemaObject struct {
	Title      string          `json:"title"`
	Properties json.RawMessage `json:"properties"`
	Required   []string        `json:"required"`
}

type schemaField struct {
	Type        string   `json:"type"`
	Format      string   `json:"format"`
	Encoding    string   `json:"contentEncoding"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
	Ref         string   `json:"$ref"`
	Items       struct {
		Type string `json:"type"`
		Ref  string `json:"$ref"`
	} `json:"items"`
}

// kind names the type of a field: that of JSON, or an object's.
func (f schemaField) kind() string {
	name := func(t, ref string) string {
		if _, object, ok := strings.Cut(ref, "#/$defs/"); ok {
			return object
		}
		return t
	}
	switch {
	case f.Type == "array":
		return name(f.Items.Type, f.Items.Ref) + "[]"
	case f.Format == "date-time":
		return "time"
	case f.Encoding != "":
		return f.Encoding
	}
	return name(f.Type, f.Ref)
}

// WriteSchema writes the schema for people, in lines of a width.
func WriteSchema(w io.Writer, width int) error {
	var top struct {
		Description string          `json:"description"`
		Defs        json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(Schema, &top); err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("What --json prints. " + top.Description)
	text := wording.Fill("", b.String(), width) + `
A field that is marked with ? may be missing. A time is RFC 3339 in UTC, with
milliseconds. leasehold help json --json prints all this as JSON Schema.
`
	err := inOrder(top.Defs, func(name string, raw json.RawMessage) error {
		var o schemaObject
		if err := json.Unmarshal(raw, &o); err != nil {
			return err
		}
		text += "\n" + wording.Fill("", name+": "+o.Title, width)
		required := map[string]bool{}
		for _, field := range o.Required {
			required[field] = true
		}
		return inOrder(o.Properties, func(field string, raw json.RawMessage) error {
			var f schemaField
			if err := json.Unmarshal(raw, &f); err != nil {
				return err
			}
			if !required[field] {
				field += "?"
			}
			if len(f.Enum) > 1 {
				f.Description += ": " + strings.Join(f.Enum, ", ")
			}
			text += wording.Fill(fmt.Sprintf("  %-17s  %-9s ", field, f.kind()), f.Description, width)
			return nil
		})
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text+"\n"+columnsText)
	return err
}

// inOrder calls fn with each field of a JSON object.
func inOrder(object json.RawMessage, fn func(name string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil { // {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := fn(fmt.Sprint(name), value); err != nil {
			return err
		}
	}
	return nil
}
