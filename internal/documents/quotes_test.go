package documents_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sources lists patterns of the files from which pages may quote Go code:
// tests, and programs that tests run.
var sources = []string{
	"*_test.go", "*/*_test.go", "internal/documents/snippets_test.go", "contrib/*/*_test.go", "examples/*/main.go",
	"proof/interop/adapters/*.go", "proof/interop/fencing/*.go",
}

// unquoted lists the blocks of Go code in pages that are in no file of sources,
// with the reason for each.
var unquoted = []struct {
	path, has string // has is text in the block that no other block of the page at path contains
	why       string
}{
	{"docs/integrations.md", "gocron.NewTask(", "it is a part of a program with gocron; ExampleNoWait has the call"},
	{"docs/integrations.md", "NewElector(", "elector_test.go of leaseholdgocron starts the same, for each of several instances"},
	{"docs/integrations.md", "goose.WithLocker(", "goose_test.go of the adapters does the same with SQLite"},
	{"docs/metrics.md", "m.Watch(locks)", "ExampleNew of leaseholdprom does the same, with a registry of its own"},
	{"docs/metrics.md", "k.Partition", "ExampleNew of leaseholdprom does the same, with a registry of its own"},
}

var (
	goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	blanks  = regexp.MustCompile(`[ \t]+`)
	leftOut = regexp.MustCompile(`(?m)^\s*\.\.\.\n|\n\n`)
	remark  = regexp.MustCompile(`(\S) // .*`)
	checked = regexp.MustCompile(`(?m)^if err != nil \{\n.*\(?err\)?\n\}\n`)
)

// plain removes from lines of Go all indentation, alignment, error checks and
// trailing comments.
func plain(text string) string {
	var lines strings.Builder
	lines.WriteString("\n")
	for line := range strings.Lines(text) {
		lines.WriteString(strings.TrimSpace(remark.ReplaceAllString(blanks.ReplaceAllString(line, " "), "$1")) + "\n")
	}
	return checked.ReplaceAllString(lines.String(), "")
}

func TestGoCodeInPagesIsQuotedFromTestedFiles(t *testing.T) {
	t.Chdir(root)
	var tested []string
	for _, pattern := range sources {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no sources, %v", pattern, err)
		}
		for _, path := range paths {
			tested = append(tested, plain(content(t, path)))
		}
	}
	blocks, excused := 0, map[int]bool{}
	for path, text := range documents(t) {
		for _, m := range goBlock.FindAllStringSubmatch(text, -1) {
			blocks++
			missing := ""
			ok := slices.ContainsFunc(tested, func(source string) bool {
				for _, part := range leftOut.Split(m[1], -1) {
					if !strings.Contains(source, plain(part)) {
						missing = part
						return false
					}
				}
				return true
			})
			entry := slices.IndexFunc(unquoted, func(u struct{ path, has, why string }) bool {
				return u.path == filepath.ToSlash(path) && strings.Contains(m[1], u.has)
			})
			switch {
			case entry >= 0 && ok:
				t.Errorf("%s is quoted from a source: it needs no reason\n%s", path, m[1])
			case entry >= 0:
				excused[entry] = true
			case !ok:
				t.Errorf("%s shows Go that no tested file has:\n%s\nfor instance\n%s", path, m[1], missing)
			}
		}
	}
	for i, u := range unquoted {
		if !excused[i] {
			t.Errorf("%s has no block with %q", u.path, u.has)
		}
	}
	found(t, blocks, 20, "blocks")
}
