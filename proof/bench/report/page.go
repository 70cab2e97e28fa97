//go:build linux

package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/leasehold-go/leasehold/proof/bench/contest"
)

// Names of the files that Publish writes, and the two markers around the tables in
// performance.md.
const (
	page      = "performance.md"
	kept      = "performance.json"
	begin     = "<!-- What make bench PUBLISH=1 has measured begins here. -->\n"
	end       = "<!-- It ends here. -->\n"
	contended = "performance-contention.svg"
	costs     = "performance-cost.svg"
)

// Publish writes the results and the pictures to files in the folder docs, and inserts the
// tables into performance.md there.
func Publish(docs string, r *contest.Results) error {
	path := filepath.Join(docs, page)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	tables, err := between(string(text), "\n"+Summary(r)+"\n"+Text(r)+"\n")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	files := map[string]string{page: tables, contended: Contention(r).SVG(), costs: Cost(r).SVG()}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(docs, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return Write(filepath.Join(docs, kept), r)
}

// The function "between" returns the page with everything between the two markers replaced by the
// given text.
func between(page, text string) (string, error) {
	before, rest, ok := strings.Cut(page, begin)
	if !ok {
		return "", fmt.Errorf("it has no line %q", strings.TrimSpace(begin))
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("it has no line %q", strings.TrimSpace(end))
	}
	return before + begin + text + end + after, nil
}
