package leasehold_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTheREADMEFitsOnAPage(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(readme), "\n"); n >= 150 {
		t.Errorf("README.md has %d lines", n)
	}
}

func TestThePageOnLambdaQuotesTheTestedExample(t *testing.T) {
	page, err := os.ReadFile("docs/lambda.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_service_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, snippet, _ := strings.Cut(string(page), "```go\n")
	snippet, _, ok := strings.Cut(snippet, "```")
	if !ok || !strings.Contains(string(source), "\n"+snippet) {
		t.Errorf("docs/lambda.md shows what is not in example_service_test.go:\n%s", snippet)
	}
}

func TestTheTableOfLeasesIsWorkedOut(t *testing.T) {
	page, err := os.ReadFile("docs/timing.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\w+) \| ([\w.]+) \| ([\w.]+) \| (\w+) \| ([\w.]+) \| (\d+) \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) == 0 {
		t.Fatal("docs/timing.md has no table of leases")
	}
	for _, row := range rows {
		lease, err := time.ParseDuration(row[1])
		if err != nil {
			t.Fatal(err)
		}
		every, margin := lease/4, lease/10 // Config's defaults
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

// An error's name in a document, and in errors.go.
var (
	errorListed   = regexp.MustCompile("`(\\*?)((?:Err[A-Z]\\w*)|(?:[A-Z]\\w*Error))`")
	errorDeclared = regexp.MustCompile(`(?m)^\t(Err[A-Z]\w*) += |^type ([A-Z]\w*Error) struct`)
	reasonGiven   = regexp.MustCompile(`(?m)^\tLost\w+ +LostReason = "(\w+)"`)
)

func TestThePageForOperatorsListsEveryErrorAndNoOther(t *testing.T) {
	page, err := os.ReadFile("docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## What the library says\n")
	section, _, _ = strings.Cut(section, "\n## ")
	source, err := os.ReadFile("errors.go")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	declared := map[string]bool{}
	for _, m := range errorDeclared.FindAllStringSubmatch(string(source), -1) {
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
	for _, m := range reasonGiven.FindAllStringSubmatch(string(source), -1) {
		if !strings.Contains(section, "\n| `"+m[1]+"` | ") {
			t.Errorf("docs/operating.md does not list the reason %s of a LostError", m[1])
		}
	}
	if len(declared) < 10 {
		t.Errorf("only %d errors were found", len(declared))
	}
}

func TestTheGuaranteesQuoteTestedCode(t *testing.T) {
	guarantees, err := os.ReadFile("docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"interop/fencing/prices.go", "interop/fencing/index.go"} {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		quoted := 0
		for _, part := range strings.Split(string(guarantees), "```go\n")[1:] {
			snippet, _, _ := strings.Cut(part, "```")
			if strings.Contains(string(source), "\n"+snippet) {
				quoted++
			}
		}
		if quoted != 1 {
			t.Errorf("docs/guarantees.md quotes %s %d times, want once and to the letter", path, quoted)
		}
	}
	if n := strings.Count(string(guarantees), "```go\n"); n != 2 {
		t.Errorf("docs/guarantees.md has %d Go examples, want the two that are tested", n)
	}
}
