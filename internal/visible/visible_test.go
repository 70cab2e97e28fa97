package visible_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/visible"
)

func TestEscapingLeavesOrdinaryNamesUnchanged(t *testing.T) {
	for _, name := range []string{"web-7/812/4k2a", "Jörg Müller", "山田太郎", "Ωμέγα", "мир", "שלום", "नमस्ते", "e\u0301", "🚀", "👍🏽", "a\"b\\c'd`$(e)"} {
		for _, got := range []string{visible.Name(name), visible.Text(name), visible.Line(name)} {
			lab.Want(t, name, got, name)
		}
	}
}

func TestControlAndInvisibleCharactersAreEscaped(t *testing.T) {
	for r, want := range map[rune]string{
		0: `\u0000`, '\a': `\u0007`, '\b': `\u0008`, '\r': `\u000d`, 0x1b: `\u001b`, 0x7f: `\u007f`,
		0x85: `\u0085`, 0x9b: `\u009b`, 0x9d: `\u009d`, 0xa0: `\u00a0`, 0xad: `\u00ad`,
		0x61c: `\u061c`, 0x200b: `\u200b`, 0x200d: `\u200d`, 0x200e: `\u200e`, 0x200f: `\u200f`, 0x2028: `\u2028`, 0x2029: `\u2029`,
		0x202a: `\u202a`, 0x202e: `\u202e`, 0x2060: `\u2060`, 0x2066: `\u2066`, 0x2069: `\u2069`, 0xfeff: `\ufeff`,
		0x34f: `\u034f`, 0x3164: `\u3164`, 0xfe0f: `\ufe0f`, 0xe000: `\ue000`, 0xfff9: `\ufff9`, 0xffff: `\uffff`,
		0xe0041: `\udb40\udc41`, 0xe0100: `\udb40\udd00`, 0x1d173: `\ud834\udd73`, 0x10ffff: `\udbff\udfff`,
	} {
		lab.Want(t, fmt.Sprintf("%U", r), visible.Text("a"+string(r)+"b"), "a"+want+"b")
	}
	for in, want := range map[string]string{
		"":                   `""`,
		"a\x1b]0;x\ab":       `"a\x1b]0;x\ab"`,
		"a\u202eb\u3164":     `"a\u202eb\u3164"`,
		"a\xc2":              `"a\xc2"`,
		"two\nlines":         `"two\nlines"`,
		"two\tcells\u2028\"": `"two\tcells\u2028\""`,
	} {
		lab.Want(t, in, visible.Name(in), want)
	}
	lab.Want(t, "text", visible.Text("two\nlines\tof\xff"), "two\nlines\tof"+`\xff`)
	lab.Want(t, "line", visible.Line("two\nlines\tof"), `two\nlines\tof`)
}

func TestTextIsQuotedUnlessItLooksLikeNameOfHostOrUser(t *testing.T) {
	for in, want := range map[string]string{
		"web-7/812/4k2a":            "web-7/812/4k2a",
		"host.example:8080":         "host.example:8080",
		"ops@example.com":           "ops@example.com",
		"user#42":                   "user#42",
		"山田太郎":                      "山田太郎",
		"e\u0301":                   "e\u0301",
		"":                          `""`,
		"Jörg Müller":               `"Jörg Müller"`,
		"nobody: it is free":        `"nobody: it is free"`,
		"nobody;run-leasehold":      `"nobody;run-leasehold"`,
		"a(token":                   `"a(token"`,
		`a"b`:                       `"a\"b"`,
		"two\nlines":                `"two\nlines"`,
		"\u202eevil":                `"\u202eevil"`,
		"a…b":                       `"a…b"`,
		"it\u2800is\u2800free":      "\"it\u2800is\u2800free\"", // U+2800 is a symbol that looks like a space
		strings.Repeat("a", 200):    strings.Repeat("a", 200),
		strings.Repeat("ab", 5_000): `"` + strings.Repeat("ab", 50) + "…" + strings.Repeat("ba", 49) + `b"`,
	} {
		lab.Want(t, in, visible.Word(in), want)
	}
}

func TestMiddleOfLongTextIsReplacedByEllipsis(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "a…d"}, {"abcd", 1, "…"}, {"abcd", 0, "…"}, {"abcd", 2, "a…"},
		{"山田太郎", 4, "山田太郎"}, {"山田太郎山", 4, "山田…山"}, {"", 0, ""},
	} {
		lab.Want(t, c.text, visible.Middle(c.text, c.n), c.want)
	}
}

func TestLongErrorTextIsShortened(t *testing.T) {
	err := visible.Error(errors.New("first\nsecond " + strings.Repeat("x", 8<<20)))
	if got := err.Error(); utf8.RuneCountInString(got) > 1001 || !strings.HasPrefix(got, "first; second xx") || !strings.Contains(got, "x…x") {
		t.Errorf("%d characters: %.100s", utf8.RuneCountInString(got), got)
	}
}

// FuzzShownTextHasNoInvisibleCharacters checks that Name, Line and Text return no invisible
// characters. It also checks that quoted names and words can be unquoted, and that a JSON text
// keeps its value.
func FuzzShownTextHasNoInvisibleCharacters(f *testing.F) {
	for _, seed := range []string{"", "web/812", "\x1b[2J", "a\u009b2Jb", "\u202e\u2066", "\xff\xc2\x9b", "\u2028\ufeff\U000e0041", "\u3164\ufe0f", "\U000e0101", "\n\t\\\"", "\ufffd"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		hidden := func(r rune) bool { return !unicode.IsPrint(r) || unicode.Is(unicode.Cf, r) }
		for _, got := range []string{visible.Name(s), visible.Line(s), strings.NewReplacer("\n", "", "\t", "").Replace(visible.Text(s))} {
			if !utf8.ValidString(got) || strings.ContainsFunc(got, hidden) {
				t.Errorf("%q is shown as %q", s, got)
			}
			lab.Want(t, s, visible.Line(got), got)
		}
		if name := visible.Name(s); name != s {
			if was, err := strconv.Unquote(name); err != nil || was != s {
				t.Errorf("Name(%q) is %s, which unquotes to %q, %v", s, name, was, err)
			}
		}
		if word := visible.Word(s); word != s {
			was, err := strconv.Unquote(word)
			if err != nil || was != visible.Middle(s, visible.Longest) {
				t.Errorf("Word(%q) is %s, which unquotes to %q, %v", s, word, was, err)
			}
		}
		b := lab.Must(json.Marshal(s))(t)
		var want, got string
		lab.OK(t, json.Unmarshal(b, &want))
		if err := json.Unmarshal([]byte(visible.Text(string(b))), &got); err != nil || got != want {
			t.Errorf("%s decodes to %q, but the shown %s decodes to %q, %v", b, want, visible.Text(string(b)), got, err)
		}
	})
}

func TestRemarkOfHolderIsShownOnlyIfShortAndPrintable(t *testing.T) {
	for data, want := range map[string]string{
		"deploying v42":         "deploying v42",
		"山田太郎":                  "山田太郎",
		"":                      "",
		"  ":                    "",
		"a\nb":                  "",
		"\x1b[31mred":           "",
		"\u202etxt":             "",
		"\xff":                  "",
		strings.Repeat("a", 80): strings.Repeat("a", 80),
		strings.Repeat("a", 81): "",
	} {
		lab.Want(t, data, visible.Remark([]byte(data)), want)
	}
}
