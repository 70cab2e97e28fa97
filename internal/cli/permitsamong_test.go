//go:build unix

package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestAListingSaysWhichLocksArePermits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := append(bare(dir), "LEASEHOLD_FILE="+filepath.Join(dir, "locks.db"))
	if err := newStoreFile(filepath.Join(dir, "locks.db")); err != nil {
		t.Fatal(err)
	}
	start(t, dir, env, "acquire", "job/1", "-f", "grant").ends(0) // job is no semaphore
	start(t, dir, env, "run", "-p", "2", "gpu", "--", "true").ends(0)
	start(t, dir, env, "acquire", "gpu/0", "-f", "permit").ends(0)
	s := readSchema(t)
	for _, args := range []string{"ls --json", "ls --json gpu", "ls --json gpu/0", "ls --json --check --for 0.1", "ls --json --partition gpu/0"} {
		out, errs, code := said(t, env, strings.Fields(args)...)
		s.lines(t, "record", out)
		if code != 0 || strings.Count(out, `"semaphore":"gpu","permit":0,"key":"gpu/0"`) != 1 || strings.Count(out, "semaphore") != 1 {
			t.Errorf("%s: exit code %d: %s%s", args, code, out, errs)
		}
	}
	screen := onTerminal(t, dir, env, "ls")
	screen.ends(0)
	screen.shows(`\ngpu/0 \(permit\)  [^ ]+/\d+/`)
}
