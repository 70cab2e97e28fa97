package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestMessagesDoNotHardCodePluralAfterNumber(t *testing.T) {
	files, err := filepath.Glob("*.go")
	rooms, _ := filepath.Glob("*/*.go") // Glob fails only for an invalid pattern
	commands, _ := filepath.Glob("commands/*/*.go")
	files = slices.Concat(files, rooms, commands)
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	plural := regexp.MustCompile(`"[^"]*%(\[\d\])?d [a-z]+s\b[^"]*"`)
	always := []string{ // endings of messages in which the number is a limit or is never 1, so that the plural is right
		`"-p %d: use 1 to %d permits"`, `"all %d permits of %s are held"`, ` at most %d bytes"`, `"%d bytes"`, `"%d bytes (see --data)"`, `" and %d holders"`,
		`"hand-over among %d clients"`,
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, literal := range plural.FindAllString(string(lab.Must(os.ReadFile(file))(t)), -1) {
			if !slices.ContainsFunc(always, func(known string) bool { return strings.HasSuffix(literal, known) }) {
				t.Errorf("%s: %s: use wording.Count", file, literal)
			}
		}
	}
}
