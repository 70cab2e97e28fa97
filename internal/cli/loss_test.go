//go:build unix

package cli_test

import (
	"path/filepath"
	"regexp"
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
			breaks := []string{"break", keys[0], "--token", tokenOf(t, env, keys[0]), "--yes", "--reason", "its host is gone"}
			start(t, dir, owned(env, "ops/ada"), breaks...).ends(0)
			p.ends(123)
			says := regexp.MustCompile(`^leasehold: lost ` + keys[0] +
				` .*: broken by ops/ada/[a-z2-7]{4} at \d\d:\d\d:\d\d: "its host is gone"; CMD was stopped`)
			if text := p.stderr.String(); strings.Count(text, "\n") != 1 || !says.MatchString(text) {
				t.Errorf("it says %q, want one line that matches %s", text, says)
			}
		})
	}
}
