package expr

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestParseConditionFollowsOperatorPrecedence(t *testing.T) {
	a, b := Path{{Name: "a"}}, Path{{Name: "b"}}
	v, w := Placeholder(":v"), Placeholder(":w")
	equal := func(left, right Operand) Condition { return Comparison{"=", left, right} }
	for source, want := range map[string]Condition{
		"a = :v":                         equal(a, v),
		"a=:v":                           equal(a, v),
		"(a) = (:v)":                     equal(a, v),
		"(a = :v)":                       equal(a, v),
		"a <> :v":                        Comparison{"<>", a, v},
		"a<=:v":                          Comparison{"<=", a, v},
		"a > b":                          Comparison{">", a, b},
		"size(a) >= :v":                  Comparison{">=", Size{a}, v},
		"a BETWEEN :v AND :w":            Between{a, v, w},
		"a in (:v)":                      In{a, []Operand{v}},
		"a IN (:v, b, size(b))":          In{a, []Operand{v, b, Size{b}}},
		"NOT a = :v":                     Not{equal(a, v)},
		"NOT NOT a = :v":                 Not{Not{equal(a, v)}},
		"a = :v OR b = :v AND a = :w":    Or{equal(a, v), And{equal(b, v), equal(a, w)}},
		"NOT a = :v AND b = :v":          And{Not{equal(a, v)}, equal(b, v)},
		"(a = :v OR b = :v) AND a = :w":  And{Or{equal(a, v), equal(b, v)}, equal(a, w)},
		"a BETWEEN :v AND :w AND b = :v": And{Between{a, v, w}, equal(b, v)},
		"attribute_exists(a)":            Call{"attribute_exists", []Operand{a}},
		"attribute_not_exists (a.b)":     Call{"attribute_not_exists", []Operand{Path{{Name: "a"}, {Name: "b"}}}},
		"begins_with(#x[1].#y, :v)":      Call{"begins_with", []Operand{Path{{Name: "#x"}, {Index: 1}, {Name: "#y"}}, v}},
		"contains(a, :v) OR attribute_type(b,:w)": Or{Call{"contains", []Operand{a, v}}, Call{"attribute_type", []Operand{b, w}}},
		"\ta =\n :v ": equal(a, v),
		"#a0_ = :0a":  equal(Path{{Name: "#a0_"}}, Placeholder(":0a")),
	} {
		if got, err := ParseCondition(source); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %#v, %v\nwant %#v", source, got, err, want)
		}
	}
}

func TestInvalidConditionReturnsMessageOfDynamoDB(t *testing.T) {
	for source, want := range map[string]string{
		"":                                     `The expression can not be empty;`,
		"n é :v":                               `Syntax error; token: "é", near: "n é :v"`,
		"n AND n = :v":                         `Syntax error; token: "AND", near: "n AND n"`,
		"NOT n":                                `Syntax error; token: "<EOF>", near: "n"`,
		"n IN ()":                              `Syntax error; token: ")", near: "()"`,
		"_n = :v":                              `Syntax error; token: "_", near: "_n"`,
		"1n = :v":                              `Syntax error; token: "1", near: "1n"`,
		"# = :v":                               `Syntax error; token: "#", near: "# ="`,
		"n..a = :v":                            `Syntax error; token: ".", near: "..a"`,
		"n BETWEEN :v OR :w":                   `Syntax error; token: "OR", near: ":v OR :w"`,
		"(a = :v) = :w":                        `Syntax error; token: "=", near: ") = :w"`,
		"((n)) = :v":                           `The expression has redundant parentheses;`,
		"a.Owner = :v":                         `Attribute name is a reserved keyword; reserved keyword: Owner`,
		"attribute_exists(n) = :v":             `The function is not allowed to be used this way in an expression; function: attribute_exists`,
		"begins_with(n)":                       `Incorrect number of operands for operator or function; operator or function: begins_with, number of operands: 1`,
		"Attribute_Exists(n)":                  `Invalid function name; function: Attribute_Exists`,
		"n[99999999999] = :v":                  `List index is not within the allowable range; index: [99999999999]`,
		strings.Repeat("a=b OR ", 301) + "a=b": `The expression contains too many operators; operator count: 301`,
	} {
		if _, err := ParseCondition(source); err == nil || err.Error() != want {
			t.Errorf("%.60s\n got %v\nwant %s", source, err, want)
		}
	}
}

func TestWalkVisitsEveryAttributePathInCondition(t *testing.T) {
	condition, err := ParseCondition("a = :v AND NOT (b BETWEEN c AND d OR size(e) IN (f, :v)) OR contains(g.h, i[0])")
	if err != nil {
		t.Fatal(err)
	}
	var met []string
	Walk(condition, func(p Path) { met = append(met, p.String()) })
	if got := strings.Join(met, " "); got != "a b c d e f g.h i[0]" {
		t.Errorf("met %s", got)
	}
}

// format returns the condition as text, with each operand of AND, OR and NOT in parentheses.
func format(condition Condition) string {
	switch c := condition.(type) {
	case And:
		return enclose(c.Left) + " AND " + enclose(c.Right)
	case Or:
		return enclose(c.Left) + " OR " + enclose(c.Right)
	case Not:
		return "NOT " + enclose(c.Part)
	case Comparison:
		return formatOperand(c.Left) + " " + c.Op + " " + formatOperand(c.Right)
	case Between:
		return formatOperand(c.Operand) + " BETWEEN " + formatOperand(c.Low) + " AND " + formatOperand(c.High)
	case In:
		return formatOperand(c.Operand) + " IN (" + strings.Join(texts(c.List), ", ") + ")"
	case Call:
		return c.Function + "(" + strings.Join(texts(c.Operands), ", ") + ")"
	}
	panic("unknown condition")
}

func enclose(c Condition) string { return "(" + format(c) + ")" }

func texts(list []Operand) []string {
	words := make([]string, len(list))
	for i, o := range list {
		words[i] = formatOperand(o)
	}
	return words
}

func formatOperand(o Operand) string {
	switch o := o.(type) {
	case Path:
		return o.String()
	case Placeholder:
		return string(o)
	case Size:
		return "size(" + formatOperand(o.Of) + ")"
	}
	panic("unknown operand")
}

func FuzzFormattedConditionParsesToSameTree(f *testing.F) {
	for _, seed := range []string{
		"attribute_not_exists(id) OR (isReleased = :one OR version IN (:a, :b)) AND NOT n BETWEEN :a AND :b",
		"size(#a.b[3]) >= :v AND contains(c, :d)", "((a))", "a = ", "", "\xff = :v", "begins_with(a, size(:b))",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		condition, err := ParseCondition(source)
		if err != nil {
			return
		}
		written := format(condition)
		if len(written) > MaxSize {
			return
		}
		again, err := ParseCondition(written)
		if err != nil || !reflect.DeepEqual(condition, again) {
			t.Errorf("%q was read as %s, which was read as %#v, %v", source, written, again, err)
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAll573ReservedWordsAreRecognizedInUpperAndLowerCase(t *testing.T) {
	words := strings.Fields(reservedWords)
	if len(words) != 573 {
		t.Errorf("%d reserved words; DynamoDB has 573", len(words))
	}
	if !slices.IsSorted(words) {
		t.Error("the list is not in order: a word was lost or added by hand")
	}
	longest := 0
	for _, word := range words {
		longest = max(longest, len(word))
		for _, spelling := range []string{word, strings.ToLower(word), word[:1] + strings.ToLower(word[1:])} {
			if !Reserved(spelling) {
				t.Errorf("Reserved(%q) = false", spelling)
			}
		}
	}
	if longest != maxReserved {
		t.Errorf("maxReserved = %d, the longest word has %d", maxReserved, longest)
	}
	for _, free := range []string{"id", "ownerName", "leaseDuration", "keyx", "", strings.Repeat("a", 300)} {
		if Reserved(free) {
			t.Errorf("Reserved(%q) = true", free)
		}
	}
}
