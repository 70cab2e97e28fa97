package localdynamo

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxSkipped is the maximum nesting depth of a JSON value that the method "skip" accepts.
const maxSkipped = 512

// maxValues is the maximum number of JSON members and elements in a request. Each may take ten
// times as many bytes in memory as in the request. An item of 400 KB exceeds the maximum only if
// its lists contain more than 90,000 empty strings or binary values. Such an element, {"S":""},
// adds one byte to the item, but counts as two: an element and a member.
const maxValues = 500_000

// reader decodes the JSON of a request directly into the engine's own values. Strings are
// substrings of the body. After a syntax error, reader panics with an *apiError, which readJSON
// recovers.
//
// After a well-formed value that is not allowed, such as an empty set, the reader stores the error
// (in the field "refused") and continues. The caller can then add the place of the value to the
// error, such as the placeholder ":v".
type reader struct {
	source  string
	at      int
	values  int       // number of JSON members and elements read so far
	refused *apiError // error of the first value that is well-formed but not allowed
}

// readJSON calls fn to decode body. It returns an error if body is not one JSON document in
// UTF-8, or if it contains a value that is not allowed.
func readJSON(body string, fn func(*reader)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			refused, ok := r.(*apiError)
			if !ok {
				panic(r)
			}
			err = refused
		}
	}()
	r := &reader{source: body}
	if !utf8.ValidString(body) {
		r.fail("the body is not UTF-8")
	}
	r.space()
	fn(r)
	r.space()
	if r.at < len(r.source) {
		r.fail("the body goes on after its end")
	}
	if r.refused != nil {
		return r.refused
	}
	return nil
}

func (r *reader) fail(format string, args ...any) {
	panic(malformed(fmt.Sprintf(format, args...)))
}

// count counts one more member or element. It panics with an error if there are more than
// maxValues.
func (r *reader) count() {
	if r.values++; r.values > maxValues {
		panic(invalidf("The request has more than %d values, which is more than this engine reads: split it", maxValues))
	}
}

func (r *reader) refuse(err error) {
	if r.refused == nil && err != nil {
		r.refused = err.(*apiError)
	}
}

func (r *reader) space() {
	for r.at < len(r.source) {
		switch r.source[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

// peek returns the next byte of the source, or 0 at the end of the source.
func (r *reader) peek() byte {
	if r.at == len(r.source) {
		return 0
	}
	return r.source[r.at]
}

// token consumes the punctuation character c and the white space after it.
func (r *reader) token(c byte) {
	if r.peek() != c {
		r.fail("expected %q at offset %d", c, r.at)
	}
	r.at++
	r.space()
}

func (r *reader) literal(word string) bool {
	if !strings.HasPrefix(r.source[r.at:], word) {
		return false
	}
	r.at += len(word)
	r.space()
	return true
}

// null reports whether the next value is the literal null, and consumes it if so. DynamoDB
// treats a member whose value is null like a missing member.
func (r *reader) null() bool { return r.literal("null") }

// unexpected refuses a value that has the wrong JSON type. want names the right type.
func (r *reader) unexpected(want string) {
	switch c := r.peek(); {
	case c == '"':
		r.fail("STRING_VALUE cannot be converted to %s", want)
	case c == 't':
		r.fail("TRUE_VALUE cannot be converted to %s", want)
	case c == 'f':
		r.fail("FALSE_VALUE cannot be converted to %s", want)
	case c == '-' || '0' <= c && c <= '9':
		r.fail("NUMBER_VALUE cannot be converted to %s", want)
	case c == '{':
		r.fail("Start of structure or map found where not expected")
	case c == '[':
		r.fail("Start of list found where not expected")
	default:
		r.fail("expected a value at offset %d", r.at)
	}
}

// object reads a JSON object and calls fn for each member. fn must consume the member's value.
// Members whose value is null are skipped.
func (r *reader) object(fn func(name string)) {
	if r.null() {
		return
	}
	if r.peek() != '{' {
		r.unexpected("a structure or map")
	}
	r.token('{')
	for first := true; r.peek() != '}'; first = false {
		if !first {
			r.token(',')
		}
		r.count()
		name := r.string()
		r.token(':')
		if !r.null() {
			fn(name)
		}
	}
	r.token('}')
}

// array reads a JSON array and calls fn for each element. fn must consume the element.
func (r *reader) array(fn func()) {
	if r.null() {
		return
	}
	if r.peek() != '[' {
		r.unexpected("a list")
	}
	r.token('[')
	for first := true; r.peek() != ']'; first = false {
		if !first {
			r.token(',')
		}
		r.count()
		fn()
	}
	r.token(']')
}

func (r *reader) string() string {
	if r.peek() != '"' {
		r.unexpected("String")
	}
	from := r.at + 1
	for i := from; i < len(r.source); i++ {
		switch c := r.source[i]; {
		case c == '"':
			r.at = i + 1
			r.space()
			return r.source[from:i]
		case c == '\\':
			return r.escaped(from, i)
		case c < ' ':
			r.fail("a control character in the string at offset %d", r.at)
		}
	}
	r.fail("the string at offset %d has no end", r.at)
	return ""
}

// escaped reads the rest of a string. The string starts at r.source[from], and its first escape
// sequence starts at r.source[i].
func (r *reader) escaped(from, i int) string {
	out := append(make([]byte, 0, i-from+32), r.source[from:i]...)
	for i < len(r.source) {
		c := r.source[i]
		switch {
		case c == '"':
			r.at = i + 1
			r.space()
			return string(out)
		case c < ' ':
			r.fail("a control character in the string at offset %d", r.at)
		case c != '\\':
			out = append(out, c)
			i++
		default:
			var char rune
			char, i = r.escape(i + 1)
			out = utf8.AppendRune(out, char)
		}
	}
	r.fail("the string at offset %d has no end", r.at)
	return ""
}

// escape reads the escape sequence whose backslash is just before position i. It returns the
// character, and the position after the sequence. For an unpaired half of a surrogate pair, it
// returns U+FFFD.
func (r *reader) escape(i int) (rune, int) {
	if i < len(r.source) {
		switch c := r.source[i]; c {
		case '"', '\\', '/':
			return rune(c), i + 1
		case 'b':
			return '\b', i + 1
		case 'f':
			return '\f', i + 1
		case 'n':
			return '\n', i + 1
		case 'r':
			return '\r', i + 1
		case 't':
			return '\t', i + 1
		case 'u':
			char := r.hex(i + 1)
			i += 5
			if utf16.IsSurrogate(char) {
				if strings.HasPrefix(r.source[i:], `\u`) {
					if pair := utf16.DecodeRune(char, r.hex(i+2)); pair != utf8.RuneError {
						return pair, i + 6
					}
				}
				return utf8.RuneError, i
			}
			return char, i
		}
	}
	r.fail("an unknown escape in the string at offset %d", r.at)
	return 0, i
}

func (r *reader) hex(i int) rune {
	if i+4 <= len(r.source) {
		if n, err := strconv.ParseUint(r.source[i:i+4], 16, 16); err == nil {
			return rune(n)
		}
	}
	r.fail("an unknown escape in the string at offset %d", r.at)
	return 0
}

func (r *reader) bool() bool {
	if r.literal("true") {
		return true
	}
	if !r.literal("false") {
		r.unexpected("Boolean")
	}
	return false
}

// number consumes a JSON number and returns the number's text.
func (r *reader) number() string {
	from := r.at
	digits := func() {
		start := r.at
		for '0' <= r.peek() && r.peek() <= '9' {
			r.at++
		}
		if r.at == start {
			r.fail("expected a digit at offset %d", r.at)
		}
	}
	if r.peek() == '-' {
		r.at++
	}
	if r.peek() == '0' {
		r.at++
	} else {
		digits()
	}
	if r.peek() == '.' {
		r.at++
		digits()
	}
	if r.peek() == 'e' || r.peek() == 'E' {
		r.at++
		if r.peek() == '+' || r.peek() == '-' {
			r.at++
		}
		digits()
	}
	text := r.source[from:r.at]
	r.space()
	return text
}

func (r *reader) int() int {
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		r.unexpected("Integer")
	}
	text := r.number()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != float64(int32(n)) {
		r.fail("%s cannot be converted to Integer", text)
	}
	return int(n)
}

// skip consumes a JSON value of any type. The parameter "depth" is the number of skipped objects
// and arrays around this value.
func (r *reader) skip(depth int) {
	if depth > maxSkipped {
		r.fail("the body is nested too deeply")
	}
	switch c := r.peek(); {
	case c == '"':
		_ = r.string()
	case c == '{':
		r.object(func(string) { r.skip(depth + 1) })
	case c == '[':
		r.array(func() { r.skip(depth + 1) })
	case c == '-' || '0' <= c && c <= '9':
		r.number()
	case r.literal("true") || r.literal("false") || r.null():
	default:
		r.unexpected("")
	}
}
