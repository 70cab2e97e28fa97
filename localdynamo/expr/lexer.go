package expr

import "unicode/utf8"

type tokenKind byte

const (
	tokenEOF    tokenKind = iota
	tokenName             // name of an attribute, a keyword or a function
	tokenAlias            // placeholder for a name: #name
	tokenValue            // placeholder for a value: :value
	tokenNumber           // digits: the index of an element in a list
	tokenSymbol           // one of ( ) [ ] . , + - = <> < <= > >=
	tokenBad              // a character that cannot start a token
)

// token is one token of an expression, with its position in the source.
type token struct {
	kind     tokenKind
	from, to int
	text     string
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) || c == '_' }
func isSpace(c byte) bool  { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// lex returns the first token in source at or after the given offset. It skips white space.
func lex(source string, at int) token {
	for at < len(source) && isSpace(source[at]) {
		at++
	}
	if at == len(source) {
		return token{kind: tokenEOF, from: at, to: at, text: "<EOF>"}
	}
	end := at + 1
	kind := tokenSymbol
	switch c := source[at]; {
	case isLetter(c):
		kind, end = tokenName, skip(source, end, isWord)
	case isDigit(c):
		kind, end = tokenNumber, skip(source, end, isDigit)
	case c == '#' || c == ':':
		kind, end = tokenAlias, skip(source, end, isWord)
		if c == ':' {
			kind = tokenValue
		}
		if end == at+1 {
			kind = tokenBad
		}
	case c == '<' && end < len(source) && (source[end] == '=' || source[end] == '>'),
		c == '>' && end < len(source) && source[end] == '=':
		end++
	case c == '(' || c == ')' || c == '[' || c == ']' || c == '.' || c == ',' ||
		c == '+' || c == '-' || c == '=' || c == '<' || c == '>':
	default:
		_, size := utf8.DecodeRuneInString(source[at:])
		kind, end = tokenBad, at+size
	}
	return token{kind: kind, from: at, to: end, text: source[at:end]}
}

func skip(source string, at int, in func(byte) bool) int {
	for at < len(source) && in(source[at]) {
		at++
	}
	return at
}

// IsPlaceholder reports whether s is a placeholder, such as #name or :value. The parameter "sigil"
// is the required first character: '#' or ':'. At least one letter, digit or underscore must
// follow, and no other character.
func IsPlaceholder(s string, sigil byte) bool {
	return len(s) > 1 && s[0] == sigil && skip(s, 1, isWord) == len(s)
}
