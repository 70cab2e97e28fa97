package documents_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// between returns the text after the first occurrence of begin, up to the next occurrence of
// end. If end does not follow, it returns the text up to its end.
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
	if n := len(strings.Fields(content(t, "README.md"))); n > 700 {
		t.Errorf("README.md has %d words", n)
	}
}

func TestREADMEQuotesHelloExample(t *testing.T) {
	t.Chdir(root)
	_, program, _ := strings.Cut(content(t, "examples/hello/main.go"), "\npackage main\n")
	snippet := between(t, content(t, "README.md"), "```go\n", "```")
	if snippet != "package main\n"+program {
		t.Errorf("README.md shows what is not examples/hello/main.go:\n%s", snippet)
	}
}

func TestREADMEQuotesOutputOfDemo(t *testing.T) {
	t.Chdir(root)
	// The first pattern for stdout in this script matches the output of the demo.
	// TestScripts/demo checks that it does.
	pattern := between(t, content(t, "internal/cli/testdata/script/demo.txtar"), "\nstdout '^", "'\n")
	shown := between(t, content(t, "README.md"), "```\n", "```")
	if !regexp.MustCompile("^" + pattern + "$").MatchString(shown) {
		t.Errorf("README.md shows another demo than %s:\n%s", pattern, shown)
	}
}

func TestLeaseTableInDocumentsMatchesCalculation(t *testing.T) {
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

// errorListed matches the names of errors in a page. The other expression
// matches their declarations in errors.go.
var (
	errorListed   = regexp.MustCompile("`(\\*?)((?:Err[A-Z]\\w*)|(?:[A-Z]\\w*Error))`")
	errorDeclared = regexp.MustCompile(`(?m)^\t(Err[A-Z]\w*) += |^type ([A-Z]\w*Error) struct`)
	reasonGiven   = regexp.MustCompile(`(?m)^\tLost\w+ +LostReason = "(\w+)"`)
)

func TestOperatorsPageListsExactlyTheDeclaredErrors(t *testing.T) {
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

func TestOperatorsPageListsLogLinesOfLostLock(t *testing.T) {
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
			t.Errorf("%s is not what is said: %v", want, &e)
		}
		if !strings.Contains(section, "| "+want+" | ") {
			t.Errorf("the page does not say what to do about %s", want)
		}
	}
	if screen := strings.SplitN(page, "\n", 41); !strings.Contains(strings.Join(screen[:40], "\n"), "3 a.m.") || !strings.Contains(strings.Join(screen[:40], "\n"), "leasehold ls --check") {
		t.Error("the first screen is not what one types first")
	}
}
