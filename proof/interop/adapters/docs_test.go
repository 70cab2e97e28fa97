package adapters

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestIntegrationsPageQuotesExampleFiles(t *testing.T) {
	page := lab.Must(os.ReadFile("../../../docs/integrations.md"))(t)
	quotes := regexp.MustCompile("\\[(\\w+\\.go)\\]\\(\\.\\./proof/interop/adapters/\\w+\\.go\\)\\):\\n\\n```go\\n((?s:.*?))```").FindAllStringSubmatch(string(page), -1)
	if len(quotes) != 3 {
		t.Fatalf("docs/integrations.md quotes %d files", len(quotes))
	}
	for _, quote := range quotes {
		source := lab.Must(os.ReadFile(quote[1]))(t)
		for _, decl := range strings.Split(strings.TrimSpace(quote[2]), "\n\n") {
			if !strings.Contains(string(source), "\n"+decl+"\n") {
				t.Errorf("docs/integrations.md quotes what is not in %s:\n%s", quote[1], decl)
			}
		}
	}
}
