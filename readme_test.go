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
