package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// writers returns the positions in a source file at which the code uses stdout or stderr
// directly instead of say.Output.
func writers(t *testing.T, name string, source any) (found []string) {
	t.Helper()
	files := token.NewFileSet()
	f := lab.Must(parser.ParseFile(files, name, source, 0))(t)
	forCMD := map[ast.Expr]bool{} // allowed uses of a stream: the code passes the stream to CMD, or only examines the stream
	stream := func(name string) bool { return name == "Stdout" || name == "Stderr" }
	ast.Inspect(f, func(n ast.Node) bool {
		at := func(what string) { found = append(found, files.Position(n.Pos()).String()+": "+what) }
		switch n := n.(type) {
		case *ast.CompositeLit:
			if s, ok := n.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Cmd" {
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						forCMD[kv.Value] = true
					}
				}
			}
		case *ast.CallExpr: // a call that only examines the stream, such as IsClosed, is allowed
			f, _ := n.Fun.(*ast.Ident)
			if in, ok := n.Fun.(*ast.SelectorExpr); ok {
				f = in.Sel
			}
			switch {
			case f == nil:
			case f.Name == "readerGone", f.Name == "IsClosed":
				for _, arg := range n.Args {
					forCMD[arg] = true
				}
			case n.Fun == f && (f.Name == "print" || f.Name == "println"):
				at(f.Name)
			}
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			in, _ := n.X.(*ast.SelectorExpr)
			switch {
			case of != nil && of.Name == "os" && stream(n.Sel.Name), of != nil && of.Name == "fmt" && strings.HasPrefix(n.Sel.Name, "Print"):
				at(of.Name + "." + n.Sel.Name)
			case stream(n.Sel.Name) && !forCMD[n] && (of != nil && of.Name == "env" || in != nil && in.Sel.Name == "Env"):
				at(n.Sel.Name)
			}
		case *ast.ImportSpec:
			if n.Path.Value == `"log"` {
				at("log")
			}
		}
		return true
	})
	return found
}

func TestStandardStreamsAreWrittenOnlyByMethodsOfTypeOutput(t *testing.T) {
	allowed := map[string]int{
		"invocation/invocation.go": 4, // the four uses are in FromOS and New, which set up the streams
		"watchdog/watchdog.go":     1, // the watchdog writes reports to its supervisor
		"ownrights/ownrights.go":   1, // this package writes an error and exits before an Output exists
	}
	for _, dir := range []string{".", "*", "commands/*", "../ui", "../../cmd/leasehold"} {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			source := lab.Must(os.ReadFile(name))(t)
			found := writers(t, name, source)
			if len(found) > 0 && len(found) == allowed[filepath.ToSlash(name)] {
				continue
			}
			for _, where := range found {
				t.Errorf("%s: write through say.Output", where)
			}
		}
	}
	for _, line := range []string{`fmt.Fprintln(a.Env.Stdout, "x")`, `fmt.Println("x")`, `os.Stderr.WriteString("x")`, `println("x")`, `env.Stderr.Write(nil)`} {
		lab.Want(t, "writers found in "+line, len(writers(t, "x.go", "package x\nfunc f() { "+line+" }")), 1)
	}
}

// Only package cli may import a package under commands/. Code that two of these packages
// share belongs in a package outside commands/.
func TestOnlyPackageCLIImportsCommandPackages(t *testing.T) {
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
		t.Errorf("%d imports of command packages, %v", known, err)
	}
}

func TestMessagesDoNotHardCodePluralAfterNumber(t *testing.T) {
	files, err := filepath.Glob("*.go")
	rooms, _ := filepath.Glob("*/*.go") // Glob fails only for an invalid pattern
	commands, _ := filepath.Glob("commands/*/*.go")
	files = slices.Concat(files, rooms, commands)
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	plural := regexp.MustCompile(`"[^"]*%(\[\d\])?d [a-z]+s\b[^"]*"`)
	always := []string{ // endings of messages in which the number is a limit or is never 1, so that the plural is right
		`"-p %d: use 1 to %d permits"`, `"all %d permits of %s are held"`, ` at most %d bytes"`, `"%d bytes"`, `"%d bytes (see --data)"`, `" and %d holders"`,
		`"hand-over among %d clients"`,
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, literal := range plural.FindAllString(string(lab.Must(os.ReadFile(file))(t)), -1) {
			if !slices.ContainsFunc(always, func(known string) bool { return strings.HasSuffix(literal, known) }) {
				t.Errorf("%s: %s: use wording.Count", file, literal)
			}
		}
	}
}
