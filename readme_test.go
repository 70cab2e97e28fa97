package leasehold_test

import (
	"os"
	"strings"
	"testing"
)

func TestTheREADMEQuotesTheTestedExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	if !ok {
		t.Fatal("README.md has no Go example")
	}
	snippet, _, _ := strings.Cut(rest, "```")
	_, example, _ := strings.Cut(string(source), "func Example() {\n")
	example, _, _ = strings.Cut(example, "\n\t// Output:")
	example = strings.ReplaceAll("\n"+example, "\n\t", "\n")
	example = strings.Replace(example, "db := openDB(ctx) // ", "db := ", 1)
	if strings.TrimSpace(snippet) != strings.TrimSpace(example) {
		t.Errorf("README.md shows\n%s\nand the example is\n%s", snippet, example)
	}
	if n := strings.Count(string(readme), "\n"); n >= 150 {
		t.Errorf("README.md has %d lines", n)
	}
}
