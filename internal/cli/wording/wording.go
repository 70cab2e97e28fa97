// Package wording formats values for messages to users, such as durations, times and names
// of keys. It also breaks sentences to fit a terminal. All functions are pure. Names can come from
// other users, so Name, Owner and Cell make control characters in them visible, with package
// visible. The package writes no output and reads no flags.
package wording

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// mostNamed is the greatest number of things that List names. If there are more, List adds
// the number of the rest.
const mostNamed = 5

// List returns the text of up to five things, and how many more there are. Examples: "a",
// "a and b", "a, b, c, d, e and 9 more".
func List[T any](things []T) string {
	var names []string
	for _, t := range things[:min(len(things), mostNamed)] {
		names = append(names, fmt.Sprint(t))
	}
	if more := len(things) - mostNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// KeysAre returns the keys as List does, followed by a verb: "a is", or "a and b are".
func KeysAre(keys []leasehold.Key) string {
	return List(keys) + " " + Plural(len(keys), "is", "are")
}

// Name returns the text, for messages, of a key that has no sort key.
func Name(key string) string { return leasehold.Key{Partition: key}.String() }

// Owner returns an owner name for a sentence, with its client id shortened. If the name is
// empty, Owner returns "somebody".
func Owner(owner string) string {
	if owner == "" {
		return "somebody"
	}
	return visible.Word(protocol.ShortOwner(owner))
}

// OwnerWithoutID returns owner without "/ID", the client id that a lock client appends to
// it.
func OwnerWithoutID(owner string) string {
	if !protocol.HasClientID(owner) {
		return owner
	}
	return owner[:strings.LastIndexByte(owner, '/')]
}

// Cell returns name as text for a cell of a printed table. An empty name stays empty.
func Cell(name string) string {
	if name == "" {
		return ""
	}
	return visible.Name(name)
}

// ShellKey returns the arguments that name the key k in a leasehold command, quoted for a
// shell.
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

// ShellWord returns s as one word for a shell, quoted if needed.
func ShellWord(s string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@%+,="
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return dollarQuoted(s)
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// dollarQuoted returns s in the form $'...', in which octal numbers can replace unprintable
// characters (POSIX.1-2024, XCU 2.2.4). The shells bash, zsh and BusyBox support this form.
func dollarQuoted(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for _, r := range s {
		switch {
		case r == '\'', r == '\\':
			fmt.Fprintf(&b, `\%c`, r)
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

// Duration formats d like time.Duration.String, but without zero parts at the end: "10m"
// instead of "10m0s".
func Duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Age formats d with its one or two largest units, such as 12s, 3m12s, 5h3m or 6d5h.
func Age(d time.Duration) string {
	d = max(d, 0)
	s := int64(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd%dh", s/86400, s/3600%24)
}

// Time formats t for programs: RFC 3339 with milliseconds, in UTC.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Plural returns singular if n is 1, and plural otherwise.
func Plural(n int, singular, plural string) string {
	if n == 1 {
		return singular
	}
	return plural
}

// Count returns n with the singular or plural, such as "1 request" or "2 requests".
func Count(n int, singular, plural string) string {
	return fmt.Sprintf("%d %s", n, Plural(n, singular, plural))
}

// Token formats a fencing token. It returns "" for zero, which means that there is no
// token.
func Token(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// ParseDuration parses a duration as time.ParseDuration does. It also accepts a number
// without a unit, as seconds, and the unit d for days. It does not accept negative
// durations.
func ParseDuration(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && seconds >= 0 && seconds < 1e9 {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok { // the unit d, as in timeout(1)
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n < 1e4 {
			return time.Duration(n * 24 * float64(time.Hour)), nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New("use a duration, such as 30, 90s, 10m or 1h30m")
	}
	return d, nil
}

// Fill breaks text at spaces into lines of at most width characters. head begins the first
// line, and later lines are indented by its width. A leasehold command in text stays on one
// line, so that the user can copy it.
func Fill(head, text string, width int) string {
	indent := strings.Repeat(" ", utf8.RuneCountInString(head))
	var out strings.Builder
	line, gap := head, "" // gap is "" until the line has a word, and then a space
	for _, word := range words(text) {
		if gap != "" && utf8.RuneCountInString(line+gap+word) > width {
			out.WriteString(strings.TrimRight(line, " ") + "\n")
			line, gap = indent, ""
		}
		line, gap = line+gap+word, " "
	}
	return out.String() + line + "\n"
}

// words splits text at spaces. It returns a leasehold command as one word. A command begins with
// the word "leasehold", and ends with the next word that has a punctuation mark at its end.
func words(text string) []string {
	var out []string
	command := false
	for _, word := range strings.Split(text, " ") {
		if command {
			word = out[len(out)-1] + " " + word
			out = out[:len(out)-1]
		}
		out = append(out, word)
		begins := command || word == "leasehold"
		quoted := strings.Count(word, "'")%2 == 1
		command = begins && (quoted || !strings.ContainsAny(word[max(len(word)-1, 0):], ".,:;)?"))
	}
	return out
}

// leastCell is the smallest width, in characters, of a column that Narrow narrows.
const leastCell = 8

// Narrow narrows the columns of a line, the widest first, until the line has at most the number of
// characters in the parameter "columns". It narrows column i only if may[i] is true. It returns the
// shortened cells and the new widths.
func Narrow(cells []string, widths []int, may []bool, columns int) ([]string, []int) {
	cells, widths = slices.Clone(cells), slices.Clone(widths)
	over := 2*(len(cells)-1) - columns
	for i, c := range cells {
		widths[i] = max(widths[i], utf8.RuneCountInString(c))
		over += widths[i]
	}
	for ; over > 0; over-- {
		widest := -1
		for i := range cells {
			if may[i] && widths[i] > leastCell && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	for i, c := range cells {
		cells[i] = visible.Middle(c, widths[i])
	}
	return cells, widths
}
