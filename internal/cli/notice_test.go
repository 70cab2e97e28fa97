//go:build unix

package cli_test

import (
	"strings"
	"testing"
)

func TestCommandsReportThatTheyUseDefaultLocalStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const line = "leasehold: no table: using ~/.local/state/leasehold/locks.db, "
	for range 2 {
		p := start(t, dir, bare(dir), "run", "k", "--", "true")
		p.ends(0)
		if got := p.stderr.String(); strings.Count(got, line) != 1 {
			t.Errorf("a log says %q", got)
		}
	}
	s := programOnTerminal(t, dir, bare(dir), "sh", "-c", "leasehold ls -a; leasehold -q ls -a; leasehold __complete get ''; leasehold ls -a")
	s.ends(0)
	<-s.done
	if shown := s.shown(); strings.Count(shown, line) != 2 {
		t.Errorf("a terminal shows\n%s", shown)
	}
}
