package table

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// keyAttribute is an attribute of the table's primary key.
type keyAttribute struct{ name, attribute, role string }

func keysOfSchema(want protocol.Schema) []keyAttribute {
	keys := []keyAttribute{{want.Partition, "S", "HASH"}}
	if want.Sort != "" {
		keys = append(keys, keyAttribute{want.Sort, string(sortType(want)), "RANGE"})
	}
	return keys
}

// refused returns the text of err in place of a template. Neither Terraform nor CloudFormation
// accepts that text as a template.
func refused(err error) string {
	return "error: " + strings.ReplaceAll(err.Error(), "\n", "; ") + "\n"
}

// text is a template that is built line by line. Each level indents a line by two spaces.
type text struct{ strings.Builder }

func (t *text) line(level int, format string, args ...any) {
	if format != "" {
		t.WriteString(strings.Repeat("  ", level))
	}
	fmt.Fprintf(t, format+"\n", args...)
}

// assign writes assignments, and aligns them as terraform fmt does.
func (t *text) assign(level int, pairs [][2]string) {
	widest := 0
	for _, p := range pairs {
		widest = max(widest, utf8.RuneCountInString(p[0]))
	}
	for _, p := range pairs {
		t.line(level, "%s%s = %s", p[0], strings.Repeat(" ", widest-utf8.RuneCountInString(p[0])), p[1])
	}
}

// quote returns s in double quotes. It uses only the escapes that YAML and HCL have in common
// (YAML 1.2, "Escaped Characters"; HCL, "Quoted Template Expression"). Neither language can
// express bytes that are not UTF-8.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
