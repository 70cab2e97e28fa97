//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// readerless returns the write end of a pipe whose read end is closed.
func readerless(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	lab.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	lab.OK(t, r.Close())
	return w
}

// withoutReader runs leasehold with a standard output that is a pipe without a reader.
func withoutReader(t *testing.T, dir string, env []string, args ...string) (stderr string, code int) {
	t.Helper()
	w := readerless(t)
	p := processOf(t, dir, env, "leasehold", args...)
	p.cmd.Stdout, p.cmd.Stderr = w, &p.stderr
	p.start()
	code = p.wait()
	return p.stderr.String(), code
}

func TestClosedStdoutPipeIsNoErrorOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	start(t, dir, env, "acquire", "k", "-f", "grant").ends(0)
	arn := "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
	for _, args := range [][]string{
		{"ls"}, {"ls", "--json"}, {"ls", "-q", "--check=0.1"},
		{"get", "k"}, {"get", "k", "--json"}, {"get", "-q", "k", "--check=0.1"}, {"get", "k", "--data"},
		{"elect", "k", "--watch"}, {"elect", "k", "--watch", "--json"},
		{"table", "check"}, {"table", "check", "--json"}, {"table", "create"},
		{"table", "policy", "--table", arn}, {"table", "terraform", "--table", arn}, {"table", "cloudformation", "--table", arn},
		{"completion", "bash"}, {"completion", "zsh"}, {"completion", "fish"}, {"completion", "powershell"}, {"__complete", "get", ""},
		{"help"}, {"help", "run"}, {"help", "environment"}, {"run", "--help"}, {"--version"}, {"doctor"},
		{"local", "--addr", "127.0.0.1:0"},
	} {
		if said, code := withoutReader(t, dir, env, args...); said != "" || code != 141 && code != 0 && code != -1 {
			t.Errorf("%v: exit code %d: %s", args, code, said)
		}
	}
}

func TestGrantIsReleasedIfStdoutPipeIsClosedOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	said, code := withoutReader(t, dir, env, "acquire", "k")
	if code != 2 || !strings.Contains(said, "cannot write the grant to standard output: broken pipe; k was released again") {
		t.Errorf("exit code %d: %s", code, said)
	}
	start(t, dir, env, "acquire", "-n", "k").ends(0)
}

func TestExitCodeIsSameIfStderrPipeIsClosedOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	w := readerless(t)
	unheard := func(args ...string) *process {
		p := processOf(t, dir, env, "leasehold", args...)
		p.cmd.Stderr = w
		p.start()
		return p
	}
	p := unheard("run", "-l", "2", "k", "--", "sh", "-c", works)
	fileNumber(t, filepath.Join(dir, "pid2"))
	unheard("run", "-n", "k", "--", "true").ends(75)
	unheard("run", "k2", "--", "./nothing").ends(127)
	unheard("get", "k2").ends(1)
	unheard("get").ends(2)
	start(t, dir, env, "break", "k", "--token", tokenOf(t, env, "k"), "--yes").ends(0)
	p.ends(123)
}
