package wording

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold/internal/visible"
)

// Fill breaks text at spaces into lines of the given width. Later lines are indented by the
// width of head. A command to type stays on one line, so that it can be copied.
func Fill(head, text string, width int) string {
	indent := strings.Repeat(" ", utf8.RuneCountInString(head))
	var out strings.Builder
	line, empty := head, true
	for _, word := range words(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			out.WriteString(strings.TrimRight(line, " ") + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return out.String() + line + "\n"
}

// words splits a text. Everything from "leasehold" to the end of that part of the sentence
// is one word: it may be a command.
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

// leastCell is the width that a cell keeps on the narrowest terminal.
const leastCell = 8

// Narrow shortens cells and their columns until a line fits the number of columns: the
// widest first, and only cells that may be shortened.
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
