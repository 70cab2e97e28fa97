package sources_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The simulation and the tests of jumping clocks set the clocks that they give to the lock.
// The lock must not read any other clock, not even in a new file.
func TestLockPackagesReadWallClockOnlyWhereListed(t *testing.T) {
	t.Chdir(root)
	allowed := []string{
		"client.go New",              // gives the machine its clock
		"internal/hold/renew.go add", // measures a pause with the monotonic clock
		"record.go clockText",        // displays how long ago an event was
		"record.go MarshalJSON",
		"internal/protocol/owner.go NewVersion", // displays when a version was made
	}
	var read []string
	dirs := []string{".", "election", "semaphore", "rwlock"}
	for _, room := range []string{"attempts", "breaking", "core", "decide", "fence", "hold", "inflight", "lease", "liveness", "localqueue", "observed", "protocol", "records", "acquire", "indoubt"} {
		dirs = append(dirs, filepath.Join("internal", room))
	}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(fn, func(n ast.Node) bool {
					sel, ok := n.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					pkg, ok := sel.X.(*ast.Ident)
					if ok && pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, sel.Sel.Name) {
						read = append(read, filepath.ToSlash(name)+" "+fn.Name.Name)
					}
					return true
				})
			}
		}
	}
	for _, by := range read {
		if !slices.Contains(allowed, by) {
			t.Errorf("%s reads the wall clock of the process: use that of its machine", by)
		}
	}
	for _, by := range allowed {
		if !slices.Contains(read, by) {
			t.Errorf("%s does not read the wall clock any more", by)
		}
	}
}
