package wording

import (
	"slices"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Middle shortens text to n runes: its beginning and its end stay, and "…" stands for
// what is between them.
func Middle(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	n = max(n, 1)
	begin := n / 2
	return string(runes[:begin]) + "…" + string(runes[len(runes)-(n-1-begin):])
}

// LongestName is how much of a key a message shows.
const LongestName = 120

// Key names a key in a message.
func Key(k leasehold.Key) string { return Name(k.String()) }

// Name is Key of a key that has no sort key.
func Name(key string) string { return Middle(visible.Name(key), LongestName) }

// leastCell is how much of a cell stays, however narrow the terminal is.
const leastCell = 8

// Narrow shortens cells, and the columns that they stand in, until a line fits a number
// of columns: the widest first, and only those that may be shortened.
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
		cells[i] = Middle(c, widths[i])
	}
	return cells, widths
}
