package wording

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/leasehold-go/leasehold"
)

// ShellKey returns a key as the arguments of a command.
func ShellKey(k leasehold.Key) string {
	words := ShellWord(k.Partition)
	if strings.HasPrefix(k.Partition, "-") {
		words = "-- " + words
	}
	if k.Sort != "" {
		words = "--sort-key " + ShellWord(k.Sort) + " " + words
	}
	return words
}

// ShellWord quotes a word for a shell, if that is needed.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+,=", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return dollarQuoted(s)
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// dollarQuoted is $'...', in which what would disturb a terminal or a line stands as
// octal numbers (POSIX.1-2024, XCU 2.2.4; bash, zsh and BusyBox have it).
func dollarQuoted(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for _, r := range s {
		switch {
		case r == '\'', r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			for _, octet := range []byte(string(r)) {
				fmt.Fprintf(&b, `\%03o`, octet)
			}
		}
	}
	return b.String() + "'"
}
