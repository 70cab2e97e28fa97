package cli

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Only package cli may import a package under commands/. Code that two of these packages
// share belongs in a package outside commands/.
func TestCommandPackagesAreImportedOnlyByPackageCLI(t *testing.T) {
	const commands = `"github.com/leasehold-go/leasehold/internal/cli/commands/`
	known := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imported := range file.Imports {
			switch {
			case !strings.HasPrefix(imported.Path.Value, commands):
			case filepath.Dir(path) == ".":
				known++
			default:
				t.Errorf("%s imports %s", path, imported.Path.Value)
			}
		}
		return nil
	})
	if err != nil || known < 4 {
		t.Errorf("%d rooms, %v", known, err)
	}
}
