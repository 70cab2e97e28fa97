package cli_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/leasehold-go/leasehold/internal/lab"
)

var (
	formatVerb = regexp.MustCompile(`%(\[\d+\])?[-+# 0]*[\d.*]*[a-zA-Z]`)
	firstCell  = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
)

// saysWhatToDo matches the paths of the source files that messagesOf skips. A message in these
// files either contains its own advice, or belongs to an error that no user sees.
var saysWhatToDo = regexp.MustCompile(`^(commands/[a-z]+/(doctor|demo)|checks|demo)`)

// ofFlags lists functions that return an error for an unknown flag or an invalid flag value. The
// function messagesOf omits their messages, because these contain their own advice.
var ofFlags = []string{"flagError", "ParseDuration", "Set"}

// messagesOf returns the messages in the source of the command. The keys of the map are the
// format strings of the messages, with "…" in place of each formatting verb, such as %s.
// The values are the positions in the source.
func messagesOf(t *testing.T) map[string]string {
	t.Helper()
	paths := lab.Must(filepath.Glob("*.go"))(t)
	for _, rooms := range []string{"*/*.go", "commands/*/*.go", "../holders/*.go", "../plainfile/replace.go"} {
		beside := lab.Must(filepath.Glob(rooms))(t)
		paths = append(paths, beside...)
	}
	found := map[string]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || saysWhatToDo.MatchString(path) {
			continue
		}
		files := token.NewFileSet()
		file := lab.Must(parser.ParseFile(files, path, nil, 0))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			if of, ok := n.(*ast.FuncDecl); ok && slices.Contains(ofFlags, of.Name.Name) {
				return false
			}
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, _ := f.X.(*ast.Ident)
			isNew := f.Sel.Name == "New" && pkg != nil && pkg.Name == "errors"
			if !isNew && !slices.Contains([]string{"Note", "Always", "Text", "Errorf", "Misusef", "Sprintf"}, f.Sel.Name) {
				return true
			}
			message := strings.ReplaceAll(formatVerb.ReplaceAllString(literal(call.Args[0]), "…"), "%%", "%")
			found[message] = files.Position(call.Pos()).String()
			return true
		})
	}
	return found
}

// partOfAnother matches a text that begins with "…" and a letter, such as "…s". Such a text
// is only a part of a message.
var partOfAnother = regexp.MustCompile(`^…\pL`)

// explainsItself reports whether docs/operating.md may omit the message. A message that begins with
// a flag's name contains its own advice. A text of fewer than five words is only a part of a
// message. So is a text that partOfAnother matches.
func explainsItself(message string) bool {
	words := 0
	for _, word := range strings.Fields(message) {
		if strings.ContainsFunc(word, unicode.IsLetter) {
			words++
		}
	}
	return strings.HasPrefix(message, "--") || partOfAnother.MatchString(message) || words < 5
}

// literal returns the value of e if e consists of string literals, and "" otherwise.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	}
	return ""
}

func TestOperatingGuideListsEveryMessage(t *testing.T) {
	t.Parallel()
	page := lab.Must(os.ReadFile("../../docs/operating.md"))(t)
	_, section, ok := strings.Cut(string(page), "\n## What the command says\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !ok {
		t.Fatal("the page has no section of messages")
	}
	listed := map[string]bool{}
	for _, m := range firstCell.FindAllStringSubmatch(section, -1) {
		lab.Want(t, "listed twice: "+m[1], listed[m[1]], false)
		listed[m[1]] = true
	}
	said := messagesOf(t)
	for message, where := range said {
		if !listed[message] && !explainsItself(message) {
			t.Errorf("%s: docs/operating.md does not list this message, its meaning and what to type:\n| `%s` | |", where, message)
		}
	}
	for message := range listed {
		if _, ok := said[message]; !ok {
			t.Errorf("docs/operating.md lists a message that is not in the source: %s", message)
		}
	}
}
