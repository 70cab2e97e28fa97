package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

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

// kind returns the name of a field's type. This is a JSON type or the name of an object.
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

// schemaForPeople returns the schema as lines that fit a terminal.
func schemaForPeople(t *testing.T) string {
	t.Helper()
	const width = 80
	var top struct {
		Description string          `json:"description"`
		Defs        json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(say.Schema, &top); err != nil {
		t.Fatal(err)
	}
	text := wording.Fill("", "Output of --json. "+top.Description, width) + `
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
		t.Fatal(err)
	}
	return text
}

// inOrder calls fn with each field of a JSON object.
func inOrder(object json.RawMessage, fn func(name string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil { // the opening brace
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

// The help topic contains the schema, followed by the columns that commands print in a
// pipe.
func TestHelpTopicJSONMatchesSchema(t *testing.T) {
	const path, columns = "topics/json.txt", "\nIn a pipe, without --json, "
	topic, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	said, rest, _ := strings.Cut(string(topic), columns)
	want := schemaForPeople(t)
	if *rewrite {
		if err := os.WriteFile(path, []byte(want+columns+rest), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if said != want {
		t.Errorf("%s is not of the schema: run this test with -rewrite", path)
	}
}
