package sources_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// root is the path of the module's folder. Each test calls t.Chdir(root), so that paths in its
// output are relative to the module. With os.Chdir in TestMain instead, Go's test cache would show
// old results after files have changed.
const root = "../.."

// The simulation, and tests in which a clock jumps, give a client simulated clocks. Such tests
// cannot check code that reads the process's own clock, because that code ignores the simulated
// clocks. So the library may read the process's own clock only in the functions listed below.
func TestOnlyListedFunctionsReadWallClock(t *testing.T) {
	t.Chdir(root)
	allowed := []string{
		"client.go New",              // passes the process's clocks to the machine (package machine)
		"internal/hold/renew.go add", // measures a pause; uses only the monotonic part of the time
		"record.go clockText",        // displays how long ago an event was
		"record.go MarshalJSON",
		"internal/protocol/owner.go NewVersion", // stores the current time in a new version
	}
	var read []string
	dirs := []string{".", "election", "semaphore", "rwlock"}
	for _, room := range []string{"attempts", "breaking", "core", "decide", "fence", "hold", "lease", "liveness", "protocol", "records", "acquire", "indoubt"} {
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
			f := lab.Must(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
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
			t.Errorf("%s reads the clock of the process: use the clocks of its Machine", by)
		}
	}
	for _, by := range allowed {
		if !slices.Contains(read, by) {
			t.Errorf("%s no longer reads the wall clock: remove it from the list", by)
		}
	}
}

func TestLibraryDependsOnlyOnAWSSDK(t *testing.T) {
	t.Chdir(root)
	out := lab.Must(exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		"github.com/leasehold-go/leasehold", "github.com/leasehold-go/leasehold/layout", "github.com/leasehold-go/leasehold/contrib/byname").Output())(t)
	allowed := []string{
		"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go",
		"github.com/leasehold-go/leasehold/layout", "github.com/leasehold-go/leasehold/internal",
	}
	for _, path := range strings.Fields(string(out)) {
		ok := path == "github.com/leasehold-go/leasehold" || path == "github.com/leasehold-go/leasehold/contrib/byname"
		for _, a := range allowed {
			ok = ok || path == a || strings.HasPrefix(path, a+"/")
		}
		if !ok {
			t.Errorf("the lock packages import %s", path)
		}
	}
}
