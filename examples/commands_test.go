//go:build unix

package examples_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// typed matches the go run command in the comment at the beginning of an example program.
var typed = regexp.MustCompile(`(?m)^//\t(go run .*)$`)

// endless contains the programs that run until Ctrl-C. The test sends SIGINT once a program has
// printed lines with these beginnings. Earlier, the program's background process would ignore
// SIGINT, because the shell starts it with SIGINT ignored.
var endless = map[string][]string{"election": {"north sees that ", "south sees that "}}

func TestExampleProgramsRunWithDocumentedCommands(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob("*/main.go")
	if err != nil || len(programs) < 6 {
		t.Fatal(programs, err)
	}
	caches := lab.Must(exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output())(t)
	cache := strings.Fields(string(caches))
	for _, path := range programs {
		name := filepath.Dir(path)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := lab.Must(os.ReadFile(path))(t)
			command := typed.FindSubmatch(source)
			if command == nil {
				t.Fatal("its comment contains no go run command")
			}
			ctx, cancel := context.WithTimeout(t.Context(), tooLong)
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", "-c", string(command[1]))
			cmd.Dir, cmd.Env = "..", append(withoutSettings(), "HOME="+t.TempDir(), "GOCACHE="+cache[0], "GOMODCACHE="+cache[1])
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
			var stderr strings.Builder
			cmd.Stderr, cmd.WaitDelay = &stderr, unread
			out := lab.Must(cmd.StdoutPipe())(t)
			lab.OK(t, cmd.Start())
			last, interrupted := "", false
			awaited := slices.Clone(endless[name])
			for lines := bufio.NewScanner(out); lines.Scan(); {
				last = lines.Text()
				awaited = slices.DeleteFunc(awaited, func(begins string) bool { return strings.HasPrefix(last, begins) })
				if endless[name] != nil && len(awaited) == 0 && !interrupted {
					interrupted = true
					if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil { // sends the signal that Ctrl-C sends
						t.Error(err)
					}
				}
			}
			if err := cmd.Wait(); err != nil && !interrupted || ctx.Err() != nil || last == "" {
				t.Errorf("%v, %v; the last line was %q\n%s", ctx.Err(), err, last, &stderr)
			}
		})
	}
}
