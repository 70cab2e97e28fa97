package locktest_test

import (
	"os"
	"strings"
	"testing"
)

func TestTheRecipesQuoteTheseTests(t *testing.T) {
	page, err := os.ReadFile("../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("billing_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Testing with locktest\n")
	section, _, _ = strings.Cut(section, "\n## ")
	parts := strings.Split(section, "```go\n")
	if !ok || len(parts) != 2 {
		t.Fatalf("docs/recipes.md has %d examples of locktest, want the one that is tested", len(parts)-1)
	}
	snippet, _, _ := strings.Cut(parts[1], "```")
	for _, decl := range strings.Split(strings.TrimSpace(snippet), "\n\n") {
		if !strings.Contains(string(source), "\n"+decl+"\n") {
			t.Errorf("docs/recipes.md quotes what is not in billing_test.go:\n%s", decl)
		}
	}
}
