package sources_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// mayOverflow lists the files that may add and multiply durations directly, with the reason for
// each. A name that ends with a slash stands for all files in that folder.
var mayOverflow = map[string]string{
	"internal/durations/durations.go": "it is the arithmetic that saturates",
}

// A lease of 98 years, multiplied by three, overflows a Duration and becomes negative. So
// production code must add, subtract and multiply durations only with package durations. There
// are two exceptions: constants, and the time between two readings of the same clock.
func TestReleasedCodeContainsNoDurationArithmeticThatMayOverflow(t *testing.T) {
	t.Chdir(root)
	used := map[string]bool{}
	for _, at := range durationArithmetic(t) {
		file, _, _ := strings.Cut(at, ":")
		excepted := false
		for name := range mayOverflow {
			if file == name || strings.HasSuffix(name, "/") && strings.HasPrefix(file, name) {
				used[name], excepted = true, true
			}
		}
		if !excepted {
			t.Errorf("%s: use durations.Sum, Less, Times or Scale, which saturate", at)
		}
	}
	for name := range mayOverflow {
		if !used[name] {
			t.Errorf("%s does no such arithmetic: remove the exception", name)
		}
	}
}

// goPackage describes a package, with some fields of the output of go list.
type goPackage struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
	Module                  *struct{ Main bool }
}

func (p *goPackage) isOurs() bool { return p.Module != nil && p.Module.Main }

// listPackages compiles the packages of the module and all packages that they
// import, and returns their descriptions.
func listPackages(t *testing.T) map[string]*goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Imports,Module", "./...")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	all := map[string]*goPackage{}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &goPackage{}
		switch err := in.Decode(p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

// releasedPackages returns the packages of this module outside internal folders, and all packages
// of this module that those packages import. The other packages are for tests only.
func releasedPackages(all map[string]*goPackage) []*goPackage {
	var released []*goPackage
	var add func(path string)
	add = func(path string) {
		if p := all[path]; p != nil && p.isOurs() && !slices.Contains(released, p) {
			released = append(released, p)
			for _, imported := range p.Imports {
				add(imported)
			}
		}
	}
	for path := range all {
		if !strings.Contains(path, "/internal/") {
			add(path)
		}
	}
	return released
}

// durationArithmetic returns each source line in releasedPackages that adds, subtracts or
// multiplies durations, in the form "file:line: source". It leaves out files for other
// operating systems.
func durationArithmetic(t *testing.T) []string {
	t.Helper()
	all := listPackages(t)
	fset := token.NewFileSet()
	exports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) })
	var places []string
	for _, p := range releasedPackages(all) {
		files := make([]*ast.File, len(p.GoFiles))
		for i, name := range p.GoFiles {
			files[i] = lab.Must(parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0))(t)
		}
		info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		lab.Must((&types.Config{Importer: exports}).Check(p.ImportPath, fset, files, &info))(t)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				if isDurationArithmetic(n, info.Types) {
					places = append(places, sourceAt(t, fset.Position(n.Pos())))
				}
				return true
			})
		}
	}
	return places
}

func isDurationArithmetic(n ast.Node, of map[ast.Expr]types.TypeAndValue) bool {
	varies := func(e ast.Expr) bool {
		known := of[e]
		return known.Value == nil && known.Type != nil && known.Type.String() == "time.Duration"
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		switch n.Op {
		case token.ADD, token.MUL, token.SHL:
			return varies(n)
		case token.SUB:
			return varies(n) && (!isReading(n.X) || !isReading(n.Y))
		}
	case *ast.AssignStmt:
		return slices.Contains([]token.Token{token.ADD_ASSIGN, token.SUB_ASSIGN, token.MUL_ASSIGN, token.SHL_ASSIGN}, n.Tok) && varies(n.Lhs[0])
	case *ast.IncDecStmt:
		return varies(n.X)
	}
	return false
}

// isReading reports whether an expression is the field Mono or Boot of a decide.Instant, that is, a
// reading of a clock. The difference of two readings does not overflow.
func isReading(e ast.Expr) bool {
	field, ok := e.(*ast.SelectorExpr)
	return ok && (field.Sel.Name == "Mono" || field.Sel.Name == "Boot")
}

// sourceAt returns the source line at a position, in the form "file:line: source".
func sourceAt(t *testing.T, at token.Position) string {
	t.Helper()
	source := lab.Must(os.ReadFile(at.Filename))(t)
	here := lab.Must(os.Getwd())(t)
	name := lab.Must(filepath.Rel(here, at.Filename))(t)
	at.Filename, at.Column = filepath.ToSlash(name), 0
	return at.String() + ": " + strings.TrimSpace(strings.Split(string(source), "\n")[at.Line-1])
}
