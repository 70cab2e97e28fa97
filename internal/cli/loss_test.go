//go:build unix

package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestRunReportsLossOnceOnAnyTable(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{"one key": {"k"}, "several keys": {"a", "-k", "b"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			p := start(t, dir, env, append(append([]string{"run", "-l", "3s"}, keys...), "--", "sh", "-c", "echo $$ >pid; exec sleep 60")...)
			fileNumber(t, filepath.Join(dir, "pid"))
			start(t, dir, env, "break", keys[0], "--token", tokenOf(t, env, keys[0]), "--yes").ends(0)
			p.ends(123)
			if text := p.stderr.String(); strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "leasehold: lost "+keys[0]) || !strings.Contains(text, "; CMD was stopped") {
				t.Errorf("it says %q", text)
			}
		})
	}
}
