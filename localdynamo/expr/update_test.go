package expr

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseUpdateParsesSetRemoveAddAndDelete(t *testing.T) {
	a, b, v := Path{{Name: "a"}}, Path{{Name: "b"}}, Placeholder(":v")
	for source, want := range map[string]*Update{
		"SET a = :v":                       {Set: []Assignment{{a, v}}},
		"set a = b, b = :v":                {Set: []Assignment{{a, b}, {b, v}}},
		"SET a = b + :v":                   {Set: []Assignment{{a, Sum{"+", b, v}}}},
		"SET a = (b - :v)":                 {Set: []Assignment{{a, Sum{"-", b, v}}}},
		"SET a = b-(:v)":                   {Set: []Assignment{{a, Sum{"-", b, v}}}},
		"SET a = if_not_exists(b, :v) + b": {Set: []Assignment{{a, Sum{"+", IfNotExists{b, v}, b}}}},
		"SET a = list_append(if_not_exists(a, :v), b)": {Set: []Assignment{{a, ListAppend{IfNotExists{a, v}, b}}}},
		"REMOVE a, b[0].#c":                            {Remove: []Path{a, {{Name: "b"}, {Index: 0}, {Name: "#c"}}}},
		"ADD a :v DELETE b :v":                         {Add: []Operation{{a, v}}, Delete: []Operation{{b, v}}},
		"REMOVE a SET b = :v":                          {Set: []Assignment{{b, v}}, Remove: []Path{a}},
	} {
		if got, err := ParseUpdate(source); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %+v, %v\nwant %+v", source, got, err, want)
		}
	}
}

func TestInvalidUpdateReturnsMessageOfDynamoDB(t *testing.T) {
	for source, want := range map[string]string{
		"":                                    `The expression can not be empty;`,
		"SET":                                 `Syntax error; token: "<EOF>", near: "SET"`,
		"set a = :v Set b = :v":               `The "SET" section can only be used once in an update expression;`,
		"FOO a":                               `Syntax error; token: "FOO", near: "FOO a"`,
		"SET a = n + -1":                      `Syntax error; token: "-", near: "+ -1"`,
		"SET a = 1":                           `Syntax error; token: "1", near: "= 1"`,
		"SET a = ((b))":                       `The expression has redundant parentheses;`,
		"SET a = if_not_exists(:v, n)":        `Operator or function requires a document path; operator or function: if_not_exists`,
		"SET a = if_not_exists(z, n + :v)":    `Syntax error; token: "+", near: "n + :v"`,
		"SET a : b":                           `Syntax error; token: ":", near: "a : b"`,
		"SET :v = a":                          `Syntax error; token: ":v", near: "SET :v ="`,
		"ADD a":                               `Syntax error; token: "<EOF>", near: "a"`,
		"SET a = name":                        `Attribute name is a reserved keyword; reserved keyword: name`,
		"SET " + strings.Repeat("a", MaxSize): `Expression size has exceeded the maximum allowed size; expression size: 4100`,
	} {
		if _, err := ParseUpdate(source); err == nil || err.Error() != want {
			t.Errorf("%.60s\n got %v\nwant %s", source, err, want)
		}
	}
}

func TestTargetsMethodReturnsEveryPathThatUpdateWrites(t *testing.T) {
	update, err := ParseUpdate("DELETE d :v ADD c :v REMOVE b SET a = z")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, path := range update.Targets() {
		targets = append(targets, path.String())
	}
	if got := strings.Join(targets, " "); got != "a b c d" {
		t.Errorf("targets %s", got)
	}
}

func TestCheckOverlapRejectsConflictingPaths(t *testing.T) {
	for _, test := range []struct{ paths, want string }{
		{"a, b, c", ""},
		{"a.b, a.c", ""},
		{"a[0], a[1]", ""},
		{"a, ab", ""},
		{"a, a", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]"},
		{"a.b, c, a", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a]"},
		{"a.b, a[0]", "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a, [0]]"},
	} {
		paths, err := ParseProjection(test.paths)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := CheckOverlap(paths); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.paths, got, test.want)
		}
	}
}

func TestParseProjectionAcceptsOnlyDocumentPaths(t *testing.T) {
	paths, err := ParseProjection("a, #b.c[2]")
	if err != nil || len(paths) != 2 || paths[1].String() != "#b.c[2]" {
		t.Errorf("%v, %v", paths, err)
	}
	for source, want := range map[string]string{
		"":    `The expression can not be empty;`,
		"a,":  `Syntax error; token: "<EOF>", near: ","`,
		"a b": `Syntax error; token: "b", near: "a b"`,
	} {
		if _, err := ParseProjection(source); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", source, err, want)
		}
	}
}

// formatUpdate returns an update as text, with its sections in the order SET, REMOVE, ADD, DELETE.
func formatUpdate(u *Update) string {
	var sections []string
	section := func(name string, actions []string) {
		if len(actions) > 0 {
			sections = append(sections, name+" "+strings.Join(actions, ", "))
		}
	}
	var set, remove []string
	for _, a := range u.Set {
		set = append(set, a.Path.String()+" = "+formatTerm(a.Value))
	}
	for _, path := range u.Remove {
		remove = append(remove, path.String())
	}
	operations := func(list []Operation) (actions []string) {
		for _, o := range list {
			actions = append(actions, o.Path.String()+" "+string(o.Value))
		}
		return actions
	}
	section("SET", set)
	section("REMOVE", remove)
	section("ADD", operations(u.Add))
	section("DELETE", operations(u.Delete))
	return strings.Join(sections, " ")
}

func formatTerm(term Term) string {
	switch t := term.(type) {
	case Path:
		return t.String()
	case Placeholder:
		return string(t)
	case Sum:
		return "(" + formatTerm(t.Left) + " " + t.Op + " " + formatTerm(t.Right) + ")"
	case IfNotExists:
		return "if_not_exists(" + t.Path.String() + ", " + formatTerm(t.Default) + ")"
	case ListAppend:
		return "list_append(" + formatTerm(t.First) + ", " + formatTerm(t.Second) + ")"
	}
	panic("unknown term")
}

func FuzzFormattedUpdateParsesToSameTree(f *testing.F) {
	for _, seed := range []string{
		"SET a = if_not_exists(b, :zero) + :one, c[1].#d = list_append(:l, e) REMOVE f ADD g :h DELETE i :j",
		"SET a = (b + :c)", "SET a = ((b))", "SET", "", "ADD a :b ADD c :d", "set set = :v",
	} {
		f.Add(seed)
	}
	f.Add("a, #b.c[2], d")
	f.Fuzz(func(t *testing.T, source string) {
		if paths, err := ParseProjection(source); err == nil {
			words := make([]string, len(paths))
			for i, p := range paths {
				words[i] = p.String()
			}
			written := strings.Join(words, ", ")
			if again, err := ParseProjection(written); len(written) <= MaxSize && (err != nil || !reflect.DeepEqual(paths, again)) {
				t.Errorf("%q was read as %s, which was read as %+v, %v", source, written, again, err)
			}
		}
		update, err := ParseUpdate(source)
		if err != nil {
			return
		}
		written := formatUpdate(update)
		if len(written) > MaxSize {
			return
		}
		again, err := ParseUpdate(written)
		if err != nil || !reflect.DeepEqual(update, again) {
			t.Errorf("%q was read as %s, which was read as %+v, %v", source, written, again, err)
		}
	})
}
