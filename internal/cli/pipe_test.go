//go:build unix

package cli_test

import (
	"os"
	"strings"
	"testing"
)

// withoutReader runs a command whose output nobody reads.
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

func TestTableAReaderThatHasSeenEnoughIsNoTrouble(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	start(t, dir, env, "acquire", "k", "-f", "grant").ends(0)
	arn := "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
	for _, args := range [][]string{
		{"ls"}, {"ls", "--json"}, {"ls", "-q", "--check", "--for", "0.1"}, {"ls", "-q", "--watch"}, {"ls", "--watch", "--json"},
		{"get", "k"}, {"get", "k", "--json"}, {"get", "-q", "k", "--check", "--for", "0.1"}, {"get", "k", "--data"},
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

func TestTableAGrantThatNobodyReadsIsReleased(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	said, code := withoutReader(t, dir, env, "acquire", "k")
	if code != 2 || !strings.Contains(said, "cannot write the grant to standard output: broken pipe; k was released again") {
		t.Errorf("exit code %d: %s", code, said)
	}
	start(t, dir, env, "acquire", "-n", "k").ends(0)
}
