package documents_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// between returns the part of text after the first occurrence of "begin", up to the next occurrence
// of "end". If "end" does not follow, between returns everything after "begin".
func between(t *testing.T, text, begin, end string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, begin)
	if !ok {
		t.Fatalf("the text has no %q", begin)
	}
	part, _, _ := strings.Cut(rest, end)
	return part
}

func TestREADMEHasAtMostSevenHundredWords(t *testing.T) {
	t.Chdir(root)
	lab.WantRange(t, "words of README.md", len(strings.Fields(content(t, "README.md"))), 1, 700)
}

func TestREADMEQuotesHelloExample(t *testing.T) {
	t.Chdir(root)
	_, program, _ := strings.Cut(content(t, "examples/hello/main.go"), "\npackage main\n")
	snippet := between(t, content(t, "README.md"), "```go\n", "```")
	lab.Want(t, "program in README.md", snippet, "package main\n"+program)
}

func TestREADMEQuotesOutputOfDemo(t *testing.T) {
	t.Chdir(root)
	// The first pattern for stdout in demo.txtar describes the output of the demo.
	// TestScriptsInTestdataPass/demo checks that the output matches this pattern.
	pattern := between(t, content(t, "internal/cli/testdata/script/demo.txtar"), "\nstdout '^", "'\n")
	shown := between(t, content(t, "README.md"), "```\n", "```")
	if !regexp.MustCompile("^" + pattern + "$").MatchString(shown) {
		t.Errorf("README.md shows output that does not match %s:\n%s", pattern, shown)
	}
}

func TestFiguresOnTimingPageMatchConfigDefaults(t *testing.T) {
	t.Chdir(root)
	page := content(t, "docs/timing.md")
	rows := regexp.MustCompile(`(?m)^\| (\w+) \| ([\w.]+) \| ([\w.]+) \| (\w+) \| ([\w.]+) \| (\d+) \|$`).FindAllStringSubmatch(page, -1)
	if len(rows) == 0 {
		t.Fatal("docs/timing.md has no table of leases")
	}
	for _, row := range rows {
		lease := lab.Must(time.ParseDuration(row[1]))(t)
		every, margin := lease/4, lease/10 // the default renewal period and margin of Config
		for i, want := range []time.Duration{lease, every, margin, lease, lease - margin - every} {
			if got, err := time.ParseDuration(row[i+1]); got != want || err != nil {
				t.Errorf("%s: column %d is %s, and should be %v", row[1], i+1, row[i+1], want)
			}
		}
		if want := strconv.Itoa(int(time.Hour / every)); row[6] != want {
			t.Errorf("%s: %s renewals an hour, and should be %s", row[1], row[6], want)
		}
	}
}

// errorListed matches the names of errors on a page. errorDeclared matches the declarations of
// errors in errors.go. reasonGiven matches the declarations of the reasons of a LostError there.
var (
	errorListed   = regexp.MustCompile("`(\\*?)((?:Err[A-Z]\\w*)|(?:[A-Z]\\w*Error))`")
	errorDeclared = regexp.MustCompile(`(?m)^\t(Err[A-Z]\w*) += |^type ([A-Z]\w*Error) struct`)
	reasonGiven   = regexp.MustCompile(`(?m)^\tLost\w+ +LostReason = "(\w+)"`)
)

func TestOperatorsPageListsAllDeclaredErrorsAndNoOthers(t *testing.T) {
	t.Chdir(root)
	section := between(t, content(t, "docs/operating.md"), "\n## What the library says\n", "\n## ")
	source := content(t, "errors.go")
	declared := map[string]bool{}
	for _, m := range errorDeclared.FindAllStringSubmatch(source, -1) {
		declared[m[1]+m[2]] = true
	}
	listed := map[string]bool{}
	for _, m := range errorListed.FindAllStringSubmatch(section, -1) {
		listed[m[2]] = true
		if !declared[m[2]] {
			t.Errorf("docs/operating.md lists %s, which is not declared in errors.go", m[2])
		}
	}
	for name := range declared {
		if !listed[name] {
			t.Errorf("docs/operating.md does not list %s", name)
		}
	}
	for _, m := range reasonGiven.FindAllStringSubmatch(source, -1) {
		if !strings.Contains(section, "\n| `"+m[1]+"` | ") {
			t.Errorf("docs/operating.md does not list the reason %s of a LostError", m[1])
		}
	}
	found(t, len(declared), 10, "errors")
}

func TestOperatorsPageListsEveryReasonForLostLock(t *testing.T) {
	t.Chdir(root)
	page := content(t, "docs/operating.md")
	section := between(t, page, "\n### Losing a lock\n", "\n## ")
	later := &leasehold.Record{Owner: "host", Token: 8}
	for want, e := range map[string]leasehold.LostError{
		"`no renewal got through in time`":                                  {Reason: leasehold.LostExpired},
		"`the process stood still past the lease`":                          {Reason: leasehold.LostPaused},
		"`broken by … at …`":                                                {Reason: leasehold.LostBroken, By: &leasehold.Record{Token: 7, Broken: &leasehold.End{By: "…", At: time.Now(), Token: 7}}},
		"`somebody broke or deleted it`":                                    {Reason: leasehold.LostBroken},
		"`the record shows it released`":                                    {Reason: leasehold.LostBroken, By: &leasehold.Record{Token: 7, Released: true}},
		"`the record shows a later grant, of …`":                            {Reason: leasehold.LostReplaced, By: later},
		"`it was renewed since, by another process that resumed the grant`": {Reason: leasehold.LostReplaced, By: &leasehold.Record{Owner: "host", Token: 7}},
	} {
		e.Token = 7
		first, _, _ := strings.Cut(strings.Trim(want, "`"), "…")
		if !strings.Contains(e.Error(), ": "+first) {
			t.Errorf("%s is not in the text of the error: %v", want, &e)
		}
		if !strings.Contains(section, "| "+want+" | ") {
			t.Errorf("the page does not say what to do about %s", want)
		}
	}
	if screen := strings.SplitN(page, "\n", 41); !strings.Contains(strings.Join(screen[:40], "\n"), "3 a.m.") || !strings.Contains(strings.Join(screen[:40], "\n"), "leasehold ls --check") {
		t.Error("the first 40 lines lack \"3 a.m.\" or \"leasehold ls --check\"")
	}
}

// sources lists patterns of the files from which pages may quote Go code:
// tests, and programs that tests run.
var sources = []string{
	"*_test.go", "*/*_test.go", "internal/documents/snippets_test.go", "contrib/*/*_test.go", "examples/*/main.go",
	"proof/interop/adapters/*.go", "proof/interop/fencing/*.go",
}

// unquoted lists the exceptions: these blocks of Go code on pages are not copied from any of the
// files in sources. The field "why" is the reason.
var unquoted = []struct {
	path, has string // "has" is text of the block that no other block of the page contains
	why       string
}{
	{"docs/integrations.md", "gocron.NewTask(", "it is a part of a program with gocron; ExampleNoWait has the call"},
	{"docs/integrations.md", "NewElector(", "locker_test.go of leaseholdgocron starts the same, for each of several instances"},
	{"docs/integrations.md", "goose.WithLocker(", "manager_test.go of the adapters does the same with SQLite"},
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

// plain removes indentation, alignment, error checks and trailing comments from Go code.
func plain(text string) string {
	var lines strings.Builder
	lines.WriteString("\n")
	for line := range strings.Lines(text) {
		lines.WriteString(strings.TrimSpace(remark.ReplaceAllString(blanks.ReplaceAllString(line, " "), "$1")) + "\n")
	}
	return checked.ReplaceAllString(lines.String(), "")
}

func TestGoCodeInDocumentsIsQuotedFromTestedFiles(t *testing.T) {
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
				t.Errorf("%s: a tested file contains this code, so remove its entry in unquoted\n%s", path, m[1])
			case entry >= 0:
				excused[entry] = true
			case !ok:
				t.Errorf("%s shows Go code that no tested file contains:\n%s\nfor example\n%s", path, m[1], missing)
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
