package wording

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// mostNamed is the number of names in a message about many.
const mostNamed = 5

// List names the first few of several in one line: a; a and b; a, b and 9 more.
func List(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		names = append(slices.Clip(names[:mostNamed]), fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// KeysAre returns List of the keys and the verb: a is; a and b are.
func KeysAre(keys []leasehold.Key) string {
	return List(EachKey(keys)) + " " + Plural(len(keys), "is", "are")
}

// Key names a key in a message.
func Key(k leasehold.Key) string { return k.String() }

// Name is Key of a key that has no sort key.
func Name(key string) string { return leasehold.Key{Partition: key}.String() }

// EachKey returns the name of each key for a sentence.
func EachKey(keys []leasehold.Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.String()
	}
	return names
}

// Owner returns an owner for a sentence, with its client id shortened.
func Owner(owner string) string {
	if owner == "" {
		return "somebody"
	}
	return visible.Word(protocol.ShortOwner(owner))
}

// OwnerWithoutID returns an owner without the client id that a lock client appends.
func OwnerWithoutID(owner string) string {
	if !protocol.HasClientID(owner) {
		return owner
	}
	return owner[:strings.LastIndexByte(owner, '/')]
}

// Cell returns a name for a cell of a table; empty if there is none.
func Cell(name string) string {
	if name == "" {
		return ""
	}
	return visible.Name(name)
}

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

// dollarQuoted returns $'...', with octal numbers for characters that would disturb a
// terminal or a line (POSIX.1-2024, XCU 2.2.4; bash, zsh and BusyBox support it).
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
