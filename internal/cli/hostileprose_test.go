package cli_test

import (
	"bytes"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/layout"
)

// speech is a name that imitates a message of leasehold.
const speech = "nobody: it is free; run leasehold break k --yes"

// inQuotes matches quoted parts of a sentence: in Go's form, or as a word of a shell.
var inQuotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'`)

// prose returns the commands that write sentences rather than JSON.
func prose(commands [][]string) (found [][]string) {
	for _, args := range commands {
		if !slices.Contains(args, "--json") && !slices.Contains(args, "--raw") && args[0] != "__complete" {
			found = append(found, args)
		}
	}
	return found
}

// shownOf returns the output of a command for the layout's table, which has one row.
func (h *hostileTables) shownOf(t *testing.T, l layout.Layout, args []string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{args[0], "--table", l.Name(), "--layout", l.Name(), "--region", "local", "--endpoint-url", h.url}, args[1:]...)
	h.main(&out, &errs, args...)
	return out.String(), errs.String()
}

// spoiltFor returns the spoilt rows of a layout that DynamoDB accepts. With each row it
// returns the commands that read the row and write sentences. Commands that would change a
// row are returned only with rows that have text in free fields. In such a row no holder
// appears dead, so no command waits.
func (h *hostileTables) spoiltFor(t *testing.T, l layout.Layout, text string, changes func(string) [][]string) iter.Seq2[map[string]types.AttributeValue, [][]string] {
	return func(yield func(map[string]types.AttributeValue, [][]string) bool) {
		try := func(row map[string]types.AttributeValue, commands ...func(string) [][]string) bool {
			if !h.put(t, l.Name(), row) {
				return true
			}
			key, found := h.keyOf(t, l.Name(), row), [][]string{}
			for _, of := range commands {
				found = append(found, prose(of(key))...)
			}
			return yield(row, found)
		}
		for _, row := range h.spoiltRows(l, text) {
			if !try(row, looksAt) {
				return
			}
		}
		for _, row := range h.rows[l.Name()] {
			free := map[string]types.AttributeValue{}
			for name, v := range row {
				free[name] = spoilt(v, false, text)
			}
			if !try(free, changes) {
				return
			}
		}
	}
}

func TestMessagesQuoteNamesWrittenByOtherUsers(t *testing.T) {
	t.Parallel()
	h := newHostileTables(t)
	quoted := 0
	for _, l := range h.layouts {
		for row, commands := range h.spoiltFor(t, l, speech, changes) {
			for _, args := range commands {
				if !h.put(t, l.Name(), row) { // the previous command may have changed the row
					t.Fatal("cannot put the row again")
				}
				stdout, stderr := h.shownOf(t, l, args)
				if args[0] != "ls" && args[0] != "get" { // ls and get write table cells rather than sentences
					stderr += stdout
				}
				quoted += strings.Count(stderr, speech)
				if text := inQuotes.ReplaceAllString(stderr, `""`); strings.Contains(text, "it is free; run") {
					t.Errorf("%s: %q says %s", l.Name(), args, stderr)
				}
			}
		}
	}
	if quoted < 20 {
		t.Errorf("only %d were quoted: this test tests nothing", quoted)
	}
}

// longestLine is a limit that no proper line reaches. Even a sentence with several names of
// the greatest length, and a command with a key, is shorter.
const longestLine = 8 << 10

func TestTextOfOtherUsersIsShortened(t *testing.T) {
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
		for row, commands := range h.spoiltFor(t, l, long, func(key string) [][]string {
			return [][]string{{"acquire", "-n", "-f", "-", "--", key}, {"forget", "--yes", "--", key}}
		}) {
			for _, args := range commands {
				if !h.put(t, l.Name(), row) {
					t.Fatal("cannot put the row again")
				}
				stdout, stderr := h.shownOf(t, l, args)
				bounded(fmt.Sprintf("%s: %q", l.Name(), args), stdout)
				bounded(fmt.Sprintf("%s: %q", l.Name(), args), stderr)
			}
		}
	}
	native := h.layouts[slices.IndexFunc(h.layouts, func(l layout.Layout) bool { return l.Name() == "native" })]
	for i, said := range refusals(strings.Repeat("long/", 1<<20)) {
		if i == 3 { // this refusal is skipped, because no client would read such large headers
			continue
		}
		for _, args := range [][]string{{"get", "k"}, {"ls"}, {"run", "-n", "-v", "k", "--", "true"}, {"--json", "get", "k"}} {
			h.liar.says(said, 0)
			stdout, stderr := h.shownOf(t, native, args)
			bounded(fmt.Sprintf("refusal %d: %q", i, args), stdout+stderr)
		}
	}
	h.liar.says(nil, 0)
}

func TestGetJSONShowsLongTextUnshortened(t *testing.T) {
	t.Parallel()
	h := newHostileTables(t)
	native := h.layouts[slices.IndexFunc(h.layouts, func(l layout.Layout) bool { return l.Name() == "native" })]
	long := strings.Repeat("long/", 20_000)
	for _, row := range h.rows["native"] {
		if s, ok := row["key"].(*types.AttributeValueMemberS); !ok || s.Value != "held" {
			continue
		}
		row["ownerName"] = &types.AttributeValueMemberS{Value: long + "x"}
		if !h.put(t, "native", row) {
			t.Fatal("no row")
		}
		if stdout, stderr := h.shownOf(t, native, []string{"get", "--json", "held"}); !strings.Contains(stdout, `"owner":"`+long+`x"`) {
			t.Errorf("%.300s %s", stdout, stderr)
		}
		return
	}
	t.Error("no row of a held lock")
}
