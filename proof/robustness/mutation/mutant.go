package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is one change to one source file.
type Mutant struct {
	File  string // path from the root of the module
	Func  string
	Line  int // line of the change
	At    int // line of the code that a test must run to reach the change
	Col   int // column of that code
	Start int // byte offset where the replaced text begins
	End   int // byte offset where the replaced text ends
	With  string
	Name  string // name of the mutant; independent of line numbers, so that harmless.txt stays valid
}

// mutated returns the source of the file with the mutant's change.
func (m Mutant) mutated(source []byte) []byte {
	return slices.Concat(source[:m.Start], []byte(m.With), source[m.End:])
}

// mutantsOf returns the mutants of all source files of the package in dir, except test
// files.
func mutantsOf(root, dir string) ([]Mutant, error) {
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []Mutant
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		found, err := mutantsIn(rel, source)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// mutantsIn returns the mutants of one source file.
func mutantsIn(name string, source []byte) ([]Mutant, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, 0)
	if err != nil {
		return nil, err
	}
	f := &finder{name: name, source: source, files: files, named: map[string]int{}}
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			f.fn = fn.Name.Name
			ast.PreorderStack(fn.Body, nil, f.visit)
		}
	}
	return f.found, nil
}

// finder walks the syntax tree of a file and collects its mutants.
type finder struct {
	name   string
	source []byte
	files  *token.FileSet
	fn     string
	found  []Mutant
	named  map[string]int
}

var (
	flipped = map[token.Token][]token.Token{
		token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
		token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
		token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
		token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
	}
	renamed = map[string]string{"true": "false", "false": "true", "min": "max", "max": "min"}
)

func (f *finder) visit(n ast.Node, stack []ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		for _, op := range flipped[n.Op] {
			f.add(stack, n, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.String())
		}
		if n.Op == token.LAND || n.Op == token.LOR {
			f.add(stack, n, n.Pos(), n.End(), f.text(n.X))
			f.add(stack, n, n.Pos(), n.End(), f.text(n.Y))
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(stack, n, n.Pos(), n.End(), f.text(n.X))
		}
	case *ast.Ident:
		if with, ok := renamed[n.Name]; ok {
			f.add(stack, n, n.Pos(), n.End(), with)
		}
	case *ast.IfStmt:
		f.negate(stack, n, n.Cond)
	case *ast.SwitchStmt:
		if n.Tag != nil {
			break
		}
		for _, clause := range n.Body.List {
			for _, e := range clause.(*ast.CaseClause).List {
				f.negate(append(stack, n), clause, e)
			}
		}
	case *ast.ExprStmt:
		if !isLogging(n.X) && !isHeader(stack, n) {
			f.add(stack, n, n.Pos(), n.End(), "")
		}
	case *ast.IncDecStmt:
		if !isHeader(stack, n) { // without the increment in its header, a for loop would never end, which any test detects
			f.add(stack, n, n.Pos(), n.End(), "")
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE && !isBlank(n.Lhs) && !isHeader(stack, n) {
			f.add(stack, n, n.Pos(), n.End(), "")
		}
	case *ast.BranchStmt:
		switch {
		case n.Label != nil:
		case n.Tok == token.CONTINUE:
			f.add(stack, n, n.Pos(), n.End(), "break")
		case n.Tok == token.BREAK:
			f.add(stack, n, n.Pos(), n.End(), "continue")
		}
	}
	return true
}

// negate adds a mutant that negates a condition, if the condition is a call, a variable or
// a similar expression without an operator.
func (f *finder) negate(stack []ast.Node, n ast.Node, cond ast.Expr) {
	switch e := cond.(type) {
	case *ast.CallExpr, *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		f.add(append(stack, n), cond, e.Pos(), e.End(), "!("+f.text(e)+")")
	}
}

// isLogging reports whether an expression is a call that only writes to the log. No mutant removes
// these calls, because the lock behaves the same without them.
func isLogging(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"LogAttrs", "Warn", "WarnContext"}, sel.Sel.Name)
}

func isBlank(all []ast.Expr) bool {
	return !slices.ContainsFunc(all, func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return !ok || id.Name != "_"
	})
}

// isHeader reports whether a statement belongs to the header of an if, for, switch or
// select. Statements in headers are not removed.
func isHeader(stack []ast.Node, n ast.Stmt) bool {
	switch parent := stack[len(stack)-1].(type) {
	case *ast.IfStmt:
		return parent.Init == n
	case *ast.SwitchStmt:
		return parent.Init == n
	case *ast.ForStmt:
		return parent.Init == n || parent.Post == n
	case *ast.CommClause:
		return parent.Comm == n
	}
	return false
}

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.files.Position(n.Pos()).Offset:f.files.Position(n.End()).Offset])
}

func (f *finder) add(stack []ast.Node, n ast.Node, from, to token.Pos, with string) {
	runs := f.files.Position(runsBefore(stack, n))
	start, end := f.files.Position(from), f.files.Position(to)
	m := Mutant{
		File: f.name, Func: f.fn, Line: start.Line, At: runs.Line, Col: runs.Column,
		Start: start.Offset, End: end.Offset, With: with,
	}
	m.Name = fmt.Sprintf("%s %s: %s", f.name, f.fn, f.change(m))
	if f.named[m.Name]++; f.named[m.Name] > 1 {
		m.Name += fmt.Sprintf(" (%d)", f.named[m.Name])
	}
	f.found = append(f.found, m)
}

// runsBefore returns the position whose coverage shows whether a test runs n. Usually, this is the
// position of n itself. For an expression in a case, it is the start of the switch, because
// coverage has no block for such expressions.
func runsBefore(stack []ast.Node, n ast.Node) token.Pos {
	path := append(slices.Clip(stack), n)
	for i := len(path) - 1; i > 0; i-- {
		clause, ok := path[i-1].(*ast.CaseClause)
		if e, isExpr := path[i].(ast.Expr); ok && isExpr && slices.Contains(clause.List, e) {
			for ; i > 0; i-- {
				if s, ok := path[i-1].(*ast.SwitchStmt); ok {
					return s.Pos()
				}
			}
		}
	}
	return n.Pos()
}

// change returns a text with the line of a mutant, before and after the change.
func (f *finder) change(m Mutant) string {
	from := bytes.LastIndexByte(f.source[:m.Start], '\n') + 1
	to := len(f.source)
	if n := bytes.IndexByte(f.source[m.End:], '\n'); n >= 0 {
		to = m.End + n
	}
	before := string(f.source[from:to])
	after := string(f.source[from:m.Start]) + m.With + string(f.source[m.End:to])
	if strings.TrimSpace(after) == "" {
		return "without " + oneLine(before)
	}
	return oneLine(before) + " → " + oneLine(after)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
