package protocol

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold/internal/visible"
)

// Key names a lock.
type Key struct{ Partition, Sort string }

// String returns the partition key, followed by the sort key in parentheses if
// there is one, for people: what could be misread in a line of text is quoted, and of
// more than 120 characters the middle is left out.
func (k Key) String() string {
	name := visible.Word(k.Partition)
	if k.Sort != "" {
		name += " (" + visible.Word(k.Sort) + ")"
	}
	const longest = 120
	if utf8.RuneCountInString(name) <= longest {
		return name
	}
	runes := []rune(name)
	return string(runes[:longest/2]) + "…" + string(runes[len(runes)-longest/2+1:])
}

// Compare is the order in which several keys are taken: the same in every process.
func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(k.Partition, o.Partition), strings.Compare(k.Sort, o.Sort))
}
