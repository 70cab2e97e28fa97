package ui

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// The page loads nothing from other servers, so its own files are all that a browser loads.
func TestPageSizeMatchesDocumentation(t *testing.T) {
	total := 0
	elsewhere := regexp.MustCompile(`(?i)(src|href|url|import|from)\s*[=(]?\s*["']?https?://`)
	inline := regexp.MustCompile(`(?i)<script>|<style|\sstyle=|\son[a-z]+=|innerHTML\s*=|insertAdjacentHTML|eval\(`)
	lab.OK(t, fs.WalkDir(files, "page", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(path)
		total += len(b)
		if found := elsewhere.Find(b); found != nil {
			t.Errorf("%s asks somebody else: %s", path, found)
		}
		if found := inline.Find(b); found != nil {
			t.Errorf("%s has what the policy forbids: %s", path, found)
		}
		return err
	}))
	doc := lab.Must(os.ReadFile("../../docs/ui.md"))(t)
	if said := fmt.Sprintf("%d kB", (total+999)/1000); !strings.Contains(string(doc), said) {
		t.Errorf("docs/ui.md does not say that %s are served (%d bytes)", said, total)
	}
}
