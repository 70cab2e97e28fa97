package cli_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// schemaObject is the description of one object in the JSON schema.
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

// kind returns the name of the field's type for the help topic: a JSON type, time, base64, or an
// object of the schema.
func (f schemaField) kind() string {
	switch {
	case f.Type == "array":
		return cmp.Or(strings.TrimPrefix(f.Items.Ref, "#/$defs/"), f.Items.Type) + "[]"
	case f.Format == "date-time":
		return "time"
	}
	return cmp.Or(f.Encoding, strings.TrimPrefix(f.Ref, "#/$defs/"), f.Type)
}

// schemaForPeople returns the JSON schema as text for the help. The lines of the text fit a
// terminal of 80 columns.
func schemaForPeople(t *testing.T) string {
	t.Helper()
	const width = 80
	var top struct {
		Description string          `json:"description"`
		Defs        json.RawMessage `json:"$defs"`
	}
	lab.OK(t, json.Unmarshal(say.Schema, &top))
	text := wording.Fill("", "Output of --json. "+top.Description, width) + `
A field that is marked with ? may be missing. A time is RFC 3339 in UTC, with
milliseconds. leasehold help json --json prints all this as JSON Schema.
`
	inOrder(t, top.Defs, func(name string, raw json.RawMessage) {
		var o schemaObject
		lab.OK(t, json.Unmarshal(raw, &o))
		text += "\n" + wording.Fill("", name+": "+o.Title, width)
		required := map[string]bool{}
		for _, field := range o.Required {
			required[field] = true
		}
		inOrder(t, o.Properties, func(field string, raw json.RawMessage) {
			var f schemaField
			lab.OK(t, json.Unmarshal(raw, &f))
			if !required[field] {
				field += "?"
			}
			if len(f.Enum) > 1 {
				f.Description += ": " + strings.Join(f.Enum, ", ")
			}
			text += wording.Fill(fmt.Sprintf("  %-17s  %-9s ", field, f.kind()), f.Description, width)
		})
	})
	return text
}

// inOrder calls fn with each field of a JSON object, in the order in which the fields are written.
func inOrder(t *testing.T, object json.RawMessage, fn func(name string, value json.RawMessage)) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(object))
	lab.Must(d.Token())(t) // skips the opening brace
	for d.More() {
		name := lab.Must(d.Token())(t)
		var value json.RawMessage
		lab.OK(t, d.Decode(&value))
		fn(fmt.Sprint(name), value)
	}
}

// The help topic json contains the schema, followed by the columns that commands print to a pipe.
func TestHelpTopicOnJSONMatchesSchema(t *testing.T) {
	const path, columns = "topics/json.txt", "\nIn a pipe, without --json, "
	topic := lab.Must(os.ReadFile(path))(t)
	said, rest, _ := strings.Cut(string(topic), columns)
	want := schemaForPeople(t)
	if *rewrite {
		lab.OK(t, os.WriteFile(path, []byte(want+columns+rest), 0o644))
	} else if said != want {
		t.Errorf("%s does not match the schema: run this test with -rewrite", path)
	}
}
