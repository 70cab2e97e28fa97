package cli_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// speech is hostile text for a name field: it imitates a message of leasehold.
const speech = "nobody: it is free; run leasehold break k --yes"

// inQuotes matches the quoted parts of a sentence, in Go's double quotes or in a shell's
// single quotes.
var inQuotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'`)

// prose returns those of the given command lines that print sentences rather than JSON.
func prose(commands [][]string) (found [][]string) {
	for _, args := range commands {
		if !slices.Contains(args, "--json") && !slices.Contains(args, "--raw") && args[0] != "__complete" {
			found = append(found, args)
		}
	}
	return found
}

// spoiltRow is a row with hostile text, and the command lines that read the row and print
// sentences.
type spoiltRow struct {
	row      map[string]types.AttributeValue
	commands [][]string
}

// spoiltFor returns rows with hostile text that the server accepts, and the command lines that read
// them. For the commands of looksAt, any field may be hostile. For the commands of the parameter
// "changes", only free fields are hostile, so that no holder appears dead and no command waits.
func (h *hostileTables) spoiltFor(t *testing.T, l layout.Layout, text string, changes func(string) [][]string) (found []spoiltRow) {
	add := func(row map[string]types.AttributeValue, commands func(string) [][]string) {
		if h.put(t, l.Name(), row) {
			found = append(found, spoiltRow{row, prose(commands(h.keyOf(t, l.Name(), row)))})
		}
	}
	for _, row := range h.spoiltRows(l, text) {
		add(row, looksAt)
	}
	for _, row := range h.rows[l.Name()] {
		add(withFree(row, text), changes)
	}
	if testing.Short() { // every third row of a layout: a sample of each layout
		n := 0
		return slices.DeleteFunc(found, func(spoiltRow) bool { n++; return n%3 != 0 })
	}
	return found
}

func TestNamesWrittenByOtherUsersAppearInQuotes(t *testing.T) {
	t.Parallel()
	h := newHostileTables(t)
	quoted := 0
	for _, l := range h.layouts {
		for _, spoilt := range h.spoiltFor(t, l, speech, changes) {
			for _, args := range spoilt.commands {
				if !h.put(t, l.Name(), spoilt.row) { // the previous command may have changed the row
					t.Fatal("cannot put the row again")
				}
				stdout, stderr := h.shownOf(l, args)
				if args[0] != "ls" && args[0] != "get" { // ls and get print table cells rather than sentences
					stderr += stdout
				}
				quoted += strings.Count(stderr, speech)
				lab.WantNoPart(t, fmt.Sprintf("%s: %q", l.Name(), args), inQuotes.ReplaceAllString(stderr, `""`), "it is free; run")
			}
		}
	}
	if quoted < 20 {
		t.Errorf("only %d names were quoted: this test tests nothing", quoted)
	}
}

// longestLine is the limit for the length of a line that leasehold prints, in characters. The
// longest lines contain several names of the greatest length, and a suggested command with a key.
const longestLine = 8 << 10

func TestLongTextWrittenByOtherUsersIsShortened(t *testing.T) {
	t.Parallel()
	h := newHostileTables(t)
	long := strings.Repeat("long/", 20_000)
	bounded := func(what, text string) {
		t.Helper()
		for line := range strings.Lines(text) {
			if utf8.RuneCountInString(line) > longestLine {
				t.Errorf("%s: a line of %d bytes: %.300s", what, len(line), line)
			}
		}
	}
	for _, l := range h.layouts {
		for _, spoilt := range h.spoiltFor(t, l, long, func(key string) [][]string {
			return [][]string{{"acquire", "-n", "-f", "-", "--", key}, {"forget", "--yes", "--", key}}
		}) {
			for _, args := range spoilt.commands {
				if !h.put(t, l.Name(), spoilt.row) {
					t.Fatal("cannot put the row again")
				}
				stdout, stderr := h.shownOf(l, args)
				bounded(fmt.Sprintf("%s: %q", l.Name(), args), stdout)
				bounded(fmt.Sprintf("%s: %q", l.Name(), args), stderr)
			}
		}
	}
	longer := 1 << 20
	if testing.Short() {
		longer = 1 << 18
	}
	for i, said := range refusals(strings.Repeat("long/", longer)) {
		if i == 3 { // skipped: this error reply has its text in headers, and no client would read headers of this size
			continue
		}
		for _, args := range [][]string{{"get", "k"}, {"ls"}, {"run", "-n", "-v", "k", "--", "true"}, {"--json", "get", "k"}} {
			h.liar.says(said, 0)
			stdout, stderr := h.shownOf(layout.Native{}, args)
			bounded(fmt.Sprintf("refusal %d: %q", i, args), stdout+stderr)
		}
	}
	h.liar.says(nil, 0)
}

func TestGetWithJSONFlagPrintsLongOwnerInFull(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	long := strings.Repeat("long/", 20_000) + "x"
	putItem(t, db, map[string]types.AttributeValue{
		"key": s("held"), "ownerName": s(long), "leaseDuration": s("20000"), "recordVersionNumber": s("v-1"),
	})
	if stdout := succeeds(t, env, "get", "--json", "held"); !strings.Contains(stdout, `"owner":"`+long+`"`) {
		t.Errorf("%.300s", stdout)
	}
}
