//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withoutReader runs a command whose standard output has no reader.
func withoutReader(t *testing.T, dir string, env []string, args ...string) (stderr string, code int) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
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

// shell runs a shell command line in which $@ is leasehold with the arguments.
func shell(t *testing.T, dir string, env []string, line string, args ...string) (stderr string, code int) {
	t.Helper()
	p := processOf(t, dir, env, "sh", append([]string{"-c", line, "sh", "leasehold"}, args...)...)
	p.cmd.Stderr = &p.stderr
	p.start()
	code = p.wait()
	return p.stderr.String(), code
}

func TestClosedStdoutPreventsAcquireAndRenewOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	const closed = "standard output is closed, so the grant would be lost"
	if said, code := shell(t, dir, env, `"$@" >&-`, "acquire", "k"); code != 2 || !strings.Contains(said, closed) {
		t.Errorf("acquire: exit code %d: %s", code, said)
	}
	start(t, dir, env, "acquire", "-n", "k", "-f", "grant").ends(0)
	if said, code := shell(t, dir, env, `"$@" <grant >&-`, "renew"); code != 2 || !strings.Contains(said, closed) {
		t.Errorf("renew: exit code %d: %s", code, said)
	}
	start(t, dir, env, "release", "-f", "grant").ends(0) // succeeds because renew failed before it renewed the grant
	if said, code := shell(t, dir, env, `"$@" >/dev/null`, "acquire", "k"); code != 0 {
		t.Errorf("acquire to the null device: exit code %d: %s", code, said)
	}
}

func TestHelpReturnsOneErrorIfOutputFailsOnAnyTable(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skipf("this system has no device that is full: %v", err)
	}
	dir, env := tableEnv(t)
	for args, want := range map[string]int{"--help": 2, "help": 2, "help run": 2, "help json": 2, "help environment": 2, "ls --help": 2, "run --help": 125} {
		said, code := shell(t, dir, env, `"$@" >/dev/full`, strings.Fields(args)...)
		if code != want || strings.Count(said, "no space left on device") != 1 {
			t.Errorf("%s: exit code %d: %s", args, code, said)
		}
	}
}

func TestExitCodeIsSameIfStderrPipeIsClosedOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
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
