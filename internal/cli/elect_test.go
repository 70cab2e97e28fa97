//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

func TestElectWorksInEveryLayout(t *testing.T) {
	t.Parallel()
	for _, name := range layout.Names() {
		t.Run(name, func(t *testing.T) {
			l, err := layout.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			db, env := served(t)
			if err := table.Create(t.Context(), db, table.Spec{Name: "seats", Layout: l}); err != nil {
				t.Fatal(err)
			}
			env = append(env, "LEASEHOLD_TABLE=seats", "LEASEHOLD_LAYOUT="+name)
			if out, errs, code := said(t, env, "elect", "k", "--", "printenv", "LEASEHOLD_TOKEN"); code != 0 || out == "" {
				t.Errorf("%q, %s, exit code %d", out, errs, code)
			}
			out, errs, code := said(t, env, "elect", "k", "--value", "here", "--", "leasehold", "get", "k")
			switch {
			case l.Capabilities().Data && (code != 0 || !strings.Contains(out, "data\there\n")):
				t.Errorf("with a value: %q, %s, exit code %d", out, errs, code)
			case !l.Capabilities().Data && (code != 125 || !strings.Contains(errs, "has no data")):
				t.Errorf("with a value that it cannot carry: %q, %s, exit code %d", out, errs, code)
			}
		})
	}
}

// A lost term stops CMD. The next term starts CMD again.
func TestElectStartsCMDAgainInNextTermAfterLossOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	p := start(t, dir, env, "elect", "-l", "6s", "k", "--", "sh", "-c", `mkdir $LEASEHOLD_TOKEN && echo $LEASEHOLD_TOKEN >>terms; `+works)
	first := fileNumber(t, filepath.Join(dir, "terms"))
	cmd := fileNumber(t, filepath.Join(dir, "pid2"))
	start(t, dir, env, "break", "k", "--yes", "--token", strconv.Itoa(first)).ends(0)
	var terms []string
	eventually(t, "a second term", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "terms"))
		terms = strings.Fields(string(b))
		return err == nil && len(terms) == 2
	})
	dead(t, cmd, "the first CMD runs beside the second")
	if second, err := strconv.Atoi(terms[1]); err != nil || second <= first {
		t.Errorf("the terms %v", terms)
	}
	p.signal(syscall.SIGTERM)
	p.ends(128 + int(syscall.SIGTERM))
	if got := p.stderr.String(); !regexp.MustCompile(`: broken by [^ ]+ at [^ ]+; CMD was stopped; campaigning again\n`).MatchString(got) {
		t.Errorf("stderr: %s", got)
	}
}

// After an outage, the table contains the grant of the process's own last term.
func TestElectAfterOutageDoesNotWaitForItsOwnOldTerm(t *testing.T) {
	t.Parallel()
	var hangs atomic.Bool
	server := newFaulty(t, table.Spec{}, while(&hangs, unavailable))
	dir := t.TempDir()
	p := start(t, dir, owned(server.env, "me"), "elect", "-l", "4s", "k", "--", "sh", "-c", `echo $LEASEHOLD_TOKEN >>terms; `+works)
	fileNumber(t, filepath.Join(dir, "pid2"))
	hangs.Store(true)
	eventually(t, "the end of the term", func() bool { return strings.Contains(p.stderr.String(), "campaigning again") })
	hangs.Store(false)
	back := time.Now()
	eventually(t, "a second term", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "terms"))
		return err == nil && strings.Count(string(b), "\n") == 2
	})
	if took := time.Since(back); took > 4*time.Second {
		t.Errorf("elected again after %v", took)
	}
	p.signal(syscall.SIGTERM)
	p.ends(128 + int(syscall.SIGTERM))
	if strings.Contains(p.stderr.String(), "held by me/") {
		t.Errorf("it waited for itself: %s", &p.stderr)
	}
}

// The user sends a signal to end elect. After that, elect does not start CMD again. This
// holds even if CMD ignored the signal until its term was lost.
func TestElectDoesNotStartCMDAfterSignalOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	p := start(t, dir, env, "elect", "-l", "6s", "k", "--", "sh", "-c",
		`trap 'echo 1 >heard' TERM; echo $LEASEHOLD_TOKEN >>terms; while :; do sleep 0.01; done`)
	first := fileNumber(t, filepath.Join(dir, "terms"))
	p.signal(syscall.SIGTERM)
	fileNumber(t, filepath.Join(dir, "heard"))
	start(t, dir, env, "break", "k", "--yes", "--token", strconv.Itoa(first)).ends(0)
	p.ends(128 + int(syscall.SIGTERM))
	if got := fileNumber(t, filepath.Join(dir, "terms")); got != first {
		t.Errorf("another CMD was started, in term %d", got)
	}
}

func TestElectWatchOnTerminalShowsLeaderInWordsOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	s := onTerminal(t, dir, env, "elect", "k", "--watch")
	s.shows(`[0-9:]{8}  nobody leads`)
	leader := start(t, dir, owned(env, "me"), "elect", "k", "--value", "here", "--", "sh", "-c", works)
	s.shows(`[0-9:]{8}  me/[a-z2-7]{4} leads, term [0-9]+: here`)
	fileNumber(t, filepath.Join(dir, "pid2"))
	leader.signal(syscall.SIGTERM)
	leader.ends(128 + int(syscall.SIGTERM))
	s.types("\x03")
	s.ends(128 + int(syscall.SIGINT))
}

// The leader dies ten times in a row. Each time another process is elected, with a higher
// term, and two CMDs never run at the same time.
func TestKilledLeadersAreReplacedOneAtATimeOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	leasehold, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	const candidates, deaths = 3, 10
	// CMD creates a mark. If the mark exists, creating it fails: then another leader runs,
	// or a leader that was killed has left its mark. Only a leader that was killed may
	// leave its mark behind. The mark contains the process id of that leader's CMD.
	const leads = `
		if ! (set -C; echo $$ >leads) 2>/dev/null; then
			before=$(cat leads)
			if test -d /proc/self; then # what is left of it until it is reaped does not run
				grep -q ') [^ZX]' /proc/$before/stat 2>/dev/null
			else
				kill -0 $before 2>/dev/null
			fi && echo "$LEASEHOLD_TOKEN beside $before" >>overlaps
			echo $$ >leads
		fi
		echo "begin $LEASEHOLD_TOKEN $PPID" >>terms
		while test -e terms; do sleep 0.05; done`
	stderr, err := os.Create(filepath.Join(dir, "stderr")) // a file: unlike a pipe, it works even if a CMD keeps it open
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if b, err := os.ReadFile(stderr.Name()); err == nil && t.Failed() {
			t.Logf("%s", b)
		}
		_ = stderr.Close()
	})
	begin := func() *exec.Cmd {
		cmd := exec.Command(leasehold, "elect", "-l", "2s", "k", "--", "sh", "-c", leads)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, env, stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd
	}
	running := map[int]*exec.Cmd{}
	for range candidates {
		c := begin()
		running[c.Process.Pid] = c
	}
	began, last := time.Now(), 0
	for death := range deaths {
		var terms []string
		eventually(t, fmt.Sprintf("term %d", death+1), func() bool {
			b, err := os.ReadFile(filepath.Join(dir, "terms"))
			terms = strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
			return err == nil && bytes.HasSuffix(b, []byte("\n")) && len(terms) > death
		})
		if len(terms) != death+1 {
			t.Fatalf("terms without a death: %v", terms)
		}
		var token, pid int
		if _, err := fmt.Sscanf(terms[death], "begin %d %d", &token, &pid); err != nil {
			t.Fatal(err)
		}
		if token <= last {
			t.Errorf("term %d after term %d", token, last)
		}
		last = token
		leader := running[pid]
		if leader == nil {
			t.Fatalf("process %d leads, of %v", pid, running)
		}
		delete(running, pid)
		if err := leader.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = leader.Wait()
		c := begin() // the test restarts the process, as an init system would do
		running[c.Process.Pid] = c
	}
	t.Logf("%d leaders in %v", deaths, time.Since(began))
	if b, err := os.ReadFile(filepath.Join(dir, "overlaps")); err == nil {
		t.Errorf("two CMDs ran at once: %s", b)
	}
}
