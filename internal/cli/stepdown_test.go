//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The first leader works on for longer than its grace: nobody kills it. The last line that
// it writes is what would be lost.
func TestTableALeaderThatIsAskedEndsItsWorkAndCampaignsAgain(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	first := start(t, dir, env, "elect", "-l", "3s", "-g", "100ms", "--owner", "one", "k", "--", "sh", "-c",
		`trap 'sleep 1; echo finished >>work; exit 7' TERM; echo $LEASEHOLD_TOKEN >>one; while :; do sleep 0.01; done`)
	token := fileNumber(t, filepath.Join(dir, "one"))
	second := start(t, dir, env, "elect", "-l", "3s", "--owner", "two", "k", "--", "sh", "-c", `echo $LEASEHOLD_TOKEN >two; echo begun >>work; `+works)
	eventually(t, "a candidate", func() bool { return strings.Contains(second.stderr.String(), "waiting for k") })

	asking := start(t, dir, env, "elect", "k", "--step-down")
	asking.ends(0)
	if got := asking.stderr.String(); !strings.HasPrefix(got, "leasehold: asking the leader of k to step down") || asking.stdout.String() != "" {
		t.Errorf("it says %q", got)
	}
	if next := fileNumber(t, filepath.Join(dir, "two")); next != token+1 {
		t.Errorf("term %d follows term %d", next, token)
	}
	eventually(t, "the work", func() bool {
		work, err := os.ReadFile(filepath.Join(dir, "work"))
		return err == nil && string(work) == "finished\nbegun\n"
	})
	eventually(t, "that it campaigns", func() bool { return strings.Contains(first.stderr.String(), "campaigning again") })
	for _, want := range []string{"k: asked to step down: stopping CMD, and waiting for it\n", "k has resigned; campaigning again\n"} {
		if !strings.Contains(first.stderr.String(), want) {
			t.Errorf("the first does not say %q: %s", want, &first.stderr)
		}
	}
	second.signal(syscall.SIGTERM)
	second.ends(128 + int(syscall.SIGTERM))
	eventually(t, "another term of the first", func() bool {
		terms, err := os.ReadFile(filepath.Join(dir, "one"))
		return err == nil && strings.HasSuffix(string(terms), "\n"+strconv.Itoa(token+2)+"\n")
	})
	first.signal(syscall.SIGTERM)
	first.ends(7)
}

// What CMD has left running keeps the key held, and is all that there is to stop.
func TestTableALeaderWhoseCMDHasEndedByItselfEndsWithItsCodeWhenAsked(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	leader := start(t, dir, env, "elect", "-l", "2s", "k", "--", "sh", "-c",
		`echo ran >>ran; echo $$ >pid; sleep 300 >left.out 2>&1 & echo $! >left; exit 5`)
	cmd, left := fileNumber(t, filepath.Join(dir, "pid")), fileNumber(t, filepath.Join(dir, "left"))
	eventually(t, "CMD has ended", func() bool { return isDead(cmd) })
	start(t, dir, env, "elect", "k", "--step-down").ends(0)
	leader.ends(5)
	if !isDead(left) {
		t.Error("what it left running lives")
	}
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); err != nil || string(ran) != "ran\n" {
		t.Errorf("%q, %v", ran, err)
	}
	if got := leader.stderr.String(); !strings.Contains(got, "k: asked to step down when CMD had ended by itself: not campaigning again\n") {
		t.Errorf("it says %q", got)
	}
}
