//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAtATerminalTheStoreThatNobodyNamedIsSaidOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := bare(dir)
	count := func(text, store string) int {
		return strings.Count(text, "leasehold: no table: using ~/"+store+"/leasehold/locks.db, ")
	}
	types := func(script string) string {
		t.Helper()
		s := programOnTerminal(t, dir, env, "sh", "-c", script)
		s.ends(0)
		<-s.done
		return s.shown()
	}
	shown := types("leasehold run k -- true; leasehold ls -a; x=$(leasehold get k); XDG_STATE_HOME=$HOME/other leasehold run k -- true; leasehold doctor | cat; leasehold ls -a 2>log")
	if n := count(shown, ".local/state"); n != 1 {
		t.Errorf("said %d times of the first store:\n%s", n, shown)
	}
	if n := count(shown, "other"); n != 1 {
		t.Errorf("said %d times of the other store:\n%s", n, shown)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if n := count(string(log), ".local/state"); err != nil || n != 1 {
		t.Errorf("said %d times in a log: %v", n, err)
	}
	if shown := types("leasehold ls; leasehold ls"); count(shown, ".local/state") != 1 {
		t.Errorf("at another terminal:\n%s", shown)
	}
	if shown := types("leasehold __complete get ''; leasehold ls"); count(shown, ".local/state") != 1 {
		t.Errorf("after TAB, which says nothing:\n%s", shown)
	}
	if shown := types("leasehold ls; rm .local/state/leasehold/locks.db; leasehold ls"); count(shown, ".local/state") != 2 {
		t.Errorf("of a store that is made anew:\n%s", shown)
	}
}

func TestWithoutATerminalTheStoreThatNobodyNamedIsSaidEachTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		p := start(t, dir, bare(dir), "run", "k", "--", "true")
		p.ends(0)
		if got := p.stderr.String(); strings.Count(got, "no table: using ") != 1 {
			t.Errorf("a log says %q", got)
		}
	}
}

func TestDoctorSaysWhichStoreNobodyNamedInItsTableAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, bare(dir), "doctor")
	p.wait()
	if out, beside := p.stdout.String(), p.stderr.String(); !strings.Contains(out, "as no table and no file is named") || beside != "" {
		t.Errorf("it prints %s\nand beside it %q", out, beside)
	}
}
