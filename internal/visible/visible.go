// Package visible prepares text from other parties, such as an owner's name or a server's
// message, for display. It escapes characters that would control a terminal or be invisible.
package visible

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// isShown reports whether r may be shown unescaped: a space, or a letter, mark, digit, sign or
// symbol of any script. Other characters control a terminal, reverse text, end a line, are
// unassigned, or are invisible. Tags, variation selectors, and all spaces except U+0020 count as
// invisible.
func isShown(r rune) bool {
	if r < utf8.RuneSelf {
		return ' ' <= r && r <= '~'
	}
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Name returns s for use in a sentence or a table. It quotes s if s is empty or contains
// characters that must be escaped.
func Name(s string) string {
	if s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !isShown(r) }) {
		return quoted(s)
	}
	return s
}

// Period names the period that begins at start, in UTC. The name is the date of start or, if
// start is not midnight, its date and time.
func Period(start time.Time) string {
	start = start.UTC()
	if start.Equal(start.Truncate(24 * time.Hour)) {
		return start.Format(time.DateOnly)
	}
	return start.Format("2006-01-02 15:04:05 UTC")
}

// longestRemark is the maximum number of bytes in a remark. Longer data is not shown as a remark.
const longestRemark = 80

// Remark returns the data of a record as text. A holder may store a remark about its work in this
// data. Remark returns "" if the data is too long, is blank, is not text, or contains characters
// that must be escaped.
func Remark(data []byte) string {
	s := string(data)
	if len(s) > longestRemark || strings.TrimSpace(s) == "" || Name(s) != s {
		return ""
	}
	return s
}

// Longest is the maximum number of characters that are shown of a text from another party.
const Longest = 200

// Word returns s for use in a sentence. It quotes s unless s is a plain word, so that a reader
// never takes a name for a part of the sentence. If s is long, Word omits its middle.
func Word(s string) string {
	short := Middle(s, Longest)
	if short == "" || short != s || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !isPlain(r) }) {
		return quoted(short)
	}
	return s
}

// isPlain reports whether r may be part of a plain word: whether r is usual in the names of hosts,
// users, files and keys. Spaces, and signs that end a sentence or a clause, are not plain.
func isPlain(r rune) bool {
	if r < utf8.RuneSelf {
		return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune("-_./@:#+=%~", r)
	}
	return isShown(r) && unicode.In(r, unicode.L, unicode.M, unicode.N)
}

// Middle shortens text to n characters. It replaces the middle of the text by "…".
func Middle(text string, n int) string {
	if len(text) <= n || utf8.RuneCountInString(text) <= n {
		return text
	}
	n = max(n, 1)
	begin, end := 0, len(text)
	for range n / 2 {
		_, size := utf8.DecodeRuneInString(text[begin:])
		begin += size
	}
	for range n - 1 - n/2 {
		_, size := utf8.DecodeLastRuneInString(text[:end])
		end -= size
	}
	return text[:begin] + "…" + text[end:]
}

// quoted returns s as a quoted Go string in which invisible characters are escaped.
func quoted(s string) string {
	var b strings.Builder
	for _, r := range strconv.Quote(s) {
		if isShown(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// Text returns s with invisible characters escaped as in JSON (\u001b). It writes a byte that is
// not UTF-8 in the form \xff. Line ends and tabs stay. If s is a document from json.Marshal, the
// result is an equal document, because only the strings in it contain such characters.
func Text(s string) string { return escaped(s, "\n\t") }

// Line is like Text, but also escapes line ends and tabs, so that the result fits in one line
// or column.
func Line(s string) string { return escaped(s, "") }

func escaped(s, but string) string {
	var b strings.Builder
	copied := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		invalid := r == utf8.RuneError && n == 1
		if !invalid && (isShown(r) || strings.ContainsRune(but, r)) {
			i += n
			continue
		}
		b.WriteString(s[copied:i])
		switch high, low := utf16.EncodeRune(r); {
		case invalid:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case high != unicode.ReplacementChar:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
		copied = i
	}
	if copied == 0 {
		return s
	}
	b.WriteString(s[copied:])
	return b.String()
}

// longestMessage is the maximum number of characters that are shown of a server's error
// message. For comparison, an AccessDeniedException takes about 300 characters to name the
// caller, the action and the table.
const longestMessage = 1000

// Message returns a server's error message in one line. If the message is long, Message omits
// its middle.
func Message(text string) string { return OneLine(Middle(text, longestMessage)) }

// OneLine joins the lines of text into one line without invisible characters. A text with
// several lines comes, for example, from errors.Join.
func OneLine(text string) string {
	return Line(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; "))
}

// Error returns an error whose text is Message(err.Error()). It returns nil if err is nil.
func Error(err error) error {
	if err == nil {
		return nil
	}
	return &shown{err}
}

type shown struct{ error }

func (e *shown) Error() string { return Message(e.error.Error()) }
func (e *shown) Unwrap() error { return e.error }
