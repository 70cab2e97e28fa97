package wording

import (
	"strings"
	"unicode/utf8"
)

// Fill breaks text at its spaces into lines of a width, the later ones indented as the
// first. A command to type stays on one line, so that it can be copied.
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

// words are the words of a text. What follows "leasehold" up to the end of that part of
// the sentence is one: it may be a command.
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
