//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// When elect loses the lock, the term of the leader ends, and elect stops CMD. When elect
// acquires the lock again, the next term begins, and elect starts CMD again.
func TestElectRestartsCMDInNextTermOnAnyBackend(t *testing.T) {
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
		t.Errorf("terms: %v", terms)
	}
	p.endsBy(syscall.SIGTERM)
	lab.WantMatch(t, "stderr", p.stderr.String(), `: broken by [^ ]+ at [^ ]+; CMD was stopped; campaigning again\n`)
}

// The test sends SIGTERM to elect, and then breaks the lock while CMD ignores the signal. elect
// must stop CMD and exit. It must not campaign again or start CMD again.
func TestElectDoesNotRestartCMDAfterSIGTERMOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	p := start(t, dir, env, "elect", "-l", "6s", "k", "--", "sh", "-c",
		`trap 'echo 1 >heard' TERM; echo $LEASEHOLD_TOKEN >>terms; while :; do sleep 0.01; done`)
	first := fileNumber(t, filepath.Join(dir, "terms"))
	p.signal(syscall.SIGTERM)
	fileNumber(t, filepath.Join(dir, "heard"))
	start(t, dir, env, "break", "k", "--yes", "--token", strconv.Itoa(first)).ends(0)
	p.ends(128 + int(syscall.SIGTERM))
	lab.Want(t, "the term of CMD", fileNumber(t, filepath.Join(dir, "terms")), first)
}

func TestElectWithWatchFlagPrintsNewLeaderOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	s := onTerminal(t, dir, env, "elect", "k", "--watch")
	s.shows(`[0-9:]{8}  nobody leads`)
	leader := start(t, dir, owned(env, "me"), "elect", "k", "--value", "here", "--", "sh", "-c", works)
	s.shows(`[0-9:]{8}  me/[a-z2-7]{4} leads, term [0-9]+: here`)
	fileNumber(t, filepath.Join(dir, "pid2"))
	leader.endsBy(syscall.SIGTERM)
	s.types("\x03")
	s.ends(128 + int(syscall.SIGINT))
}

// The test kills ten leaders in a row. After each death, another process must be elected
// with a higher fencing token, and two CMDs must never run at the same time.
func TestElectNeverRunsTwoCMDsConcurrentlyOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	leasehold := lab.Must(installed())(t)
	const candidates, deaths = 3, 10
	// CMD writes its process id to the file "leads". In the next term, CMD finds this file and
	// reads the id. If the process with this id still runs, CMD writes a line to the file
	// "overlaps", and the test fails.
	const leads = `
		if ! (set -C; echo $$ >leads) 2>/dev/null; then
			before=$(cat leads)
			if test -d /proc/self; then # a zombie does not run
				grep -q ') [^ZX]' /proc/$before/stat 2>/dev/null
			else
				kill -0 $before 2>/dev/null
			fi && echo "$LEASEHOLD_TOKEN beside $before" >>overlaps
			echo $$ >leads
		fi
		echo "begin $LEASEHOLD_TOKEN $PPID" >>terms
		while test -e terms; do sleep 0.05; done`
	stderr := lab.Must(os.Create(filepath.Join(dir, "stderr")))(t) // stderr is a file: with a pipe, Wait would not return while a CMD keeps the pipe open
	t.Cleanup(func() {
		if b, err := os.ReadFile(stderr.Name()); err == nil && t.Failed() {
			t.Logf("%s", b)
		}
		_ = stderr.Close()
	})
	running := map[int]*process{}
	begin := func() {
		p := processOf(t, dir, env, leasehold, "elect", "-l", "3s", "k", "--", "sh", "-c", leads)
		p.cmd.Stderr = stderr
		p.start()
		running[p.cmd.Process.Pid] = p
	}
	for range candidates {
		begin()
	}
	began, last, seen := time.Now(), 0, 0
	for death := range deaths {
		var terms []string
		eventually(t, fmt.Sprintf("term %d", death+1), func() bool {
			b, err := os.ReadFile(filepath.Join(dir, "terms"))
			terms = strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
			return err == nil && bytes.HasSuffix(b, []byte("\n")) && len(terms) > seen
		})
		var token, pid int
		for _, term := range terms[seen:] {
			lab.Must(fmt.Sscanf(term, "begin %d %d", &token, &pid))(t)
			if token <= last {
				t.Errorf("term %d after term %d", token, last)
			}
			last = token
		}
		seen = len(terms)
		leader := running[pid]
		if leader == nil {
			t.Fatalf("process %d leads, but is not one of %v", pid, running)
		}
		delete(running, pid)
		leader.kill()
		begin() // starts a new process in place of the killed process, as an init system would
	}
	t.Logf("%d leaders in %v", deaths, time.Since(began))
	// If the machine pauses for most of a lease, a leader loses its lock, and reports the loss.
	eventually(t, "a death or a loss before each term but the first", func() bool {
		return seen <= deaths+strings.Count(string(lab.Must(os.ReadFile(stderr.Name()))(t)), "campaigning again")
	})
	overlaps, _ := os.ReadFile(filepath.Join(dir, "overlaps"))
	lab.Want(t, "CMDs that ran at once", string(overlaps), "")
}

// The first leader is asked to step down. Its CMD then needs longer to end than the grace period
// (-g). leasehold must wait for CMD and must not kill CMD. CMD can then finish its work before the
// next leader begins.
func TestStepDownWaitsForEndOfCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	first := start(t, dir, owned(env, "one"), "elect", "-l", "8s", "-g", "100ms", "k", "--", "sh", "-c",
		`trap 'sleep 1; echo finished >>work; exit 7' TERM; echo $LEASEHOLD_TOKEN >>one; while :; do sleep 0.01; done`)
	token := fileNumber(t, filepath.Join(dir, "one"))
	second := start(t, dir, owned(env, "two"), "elect", "-l", "1m", "--http", ":0", "k", "--", "sh", "-c", `echo $LEASEHOLD_TOKEN >two; echo begun >>work; `+works)
	eventually(t, "a candidate", func() bool { return strings.Contains(second.stderr.String(), "waiting for k") })

	asking := start(t, dir, env, "elect", "k", "--step-down")
	asking.ends(0)
	lab.WantMatch(t, "stderr", asking.stderr.String(), "^leasehold: asking the leader of k to step down")
	lab.Want(t, "stdout", asking.stdout.String(), "")
	lab.Want(t, "the next term", fileNumber(t, filepath.Join(dir, "two")), token+1)
	answers(t, probesOf(t, second)+"/live", 200, "") // although its key was handed over for 4 s
	eventually(t, "the work", func() bool {
		work, err := os.ReadFile(filepath.Join(dir, "work"))
		return err == nil && string(work) == "finished\nbegun\n"
	})
	eventually(t, "the message campaigning again", func() bool { return strings.Contains(first.stderr.String(), "campaigning again") })
	first.said("k: asked to step down: stopping CMD, and waiting for it\n", "k has resigned; campaigning again\n")
	second.endsBy(syscall.SIGTERM)
	eventually(t, "another term of the first leader", func() bool {
		terms, err := os.ReadFile(filepath.Join(dir, "one"))
		return err == nil && strings.HasSuffix(string(terms), "\n"+strconv.Itoa(token+2)+"\n")
	})
	first.signal(syscall.SIGTERM)
	first.ends(7)
}

// CMD has ended, but it has left a process running, so leasehold still holds the key. The test then
// asks leasehold to step down. leasehold must stop that process, exit with the exit code of CMD,
// and not campaign again. Both that process and a waiting leasehold ignore the signal of --signal.
func TestElectReturnsExitCodeOfCMDAfterStepDownOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	leader := start(t, dir, env, "elect", "-l", "6s", "--signal", "WINCH", "-g", "0.2s", "k", "--", "sh", "-c",
		`echo ran >>ran; echo $$ >pid; sleep 300 >left.out 2>&1 & echo $! >left; exit 5`)
	cmd, left := fileNumber(t, filepath.Join(dir, "pid")), fileNumber(t, filepath.Join(dir, "left"))
	eventually(t, "CMD has ended", func() bool { return isDead(cmd) })
	start(t, dir, env, "elect", "k", "--step-down").ends(0)
	leader.ends(5)
	dead(t, left, "the process that CMD left running still runs")
	lab.Want(t, "runs of CMD", string(lab.Must(os.ReadFile(filepath.Join(dir, "ran")))(t)), "ran\n")
	leader.said("k: asked to step down when CMD had ended by itself: not campaigning again\n")
}

// CMD ends when leasehold stops it, but leaves a process running. leasehold must stop that process
// too, as it does after SIGTERM. Otherwise the leader would not resign while the process runs.
func TestStepDownStopsBackgroundProcessOfCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	leader := start(t, dir, env, "elect", "-l", "6s", "-g", "0.2s", "k", "--", "sh", "-c",
		`(trap "" TERM; exec sleep 300) >left.out 2>&1 & echo $! >left; wait`)
	left := fileNumber(t, filepath.Join(dir, "left"))
	t.Cleanup(func() { _ = syscall.Kill(left, syscall.SIGKILL) })
	start(t, dir, env, "elect", "k", "--step-down").ends(0)
	dead(t, left, "the process that CMD left running still runs")
	leader.said("k: asked to step down: stopping CMD, and waiting for it\n")
	leader.endsBy(syscall.SIGTERM)
}

func TestStepDownSuggestsBreakCommandIfIgnoredOnAnyBackend(t *testing.T) {
	t.Parallel()
	type variant struct {
		holds, asks []string
		says        string
	}
	lab.ParallelVariants(t, map[string]variant{
		"run": {[]string{"run"}, nil,
			`\nleasehold: waiting for one/\w+, who leads k, to step down: asked \d+s ago: it has not resigned: to take its term at once, leasehold break k --token TOKEN\n`},
		"elect": {[]string{"elect"}, nil, `: it has not resigned: to take its term at once, leasehold break k --token TOKEN`},
		"JSON event": {[]string{"run"}, []string{"--json"},
			`\n\{"time":"[^"]+","event":"waiting","key":"k","holder":\{[^}]*"owner":"one/\w+"[^}]*\},"lastsMs":\d+,"advice":"it has not resigned: to take its term at once, leasehold break k --token TOKEN"\}\n`},
	}, func(t *testing.T, tc variant) {
		dir, env := tableEnv(t)
		holder := start(t, dir, owned(env, "one"), append(tc.holds, "-l", "6s", "-g", "100ms", "k", "--", "sh", "-c",
			`trap : TERM; echo $LEASEHOLD_TOKEN >one; while [ ! -e over ]; do sleep 0.05; done`)...)
		token := fileNumber(t, filepath.Join(dir, "one"))
		says := regexp.MustCompile(strings.ReplaceAll(tc.says, "TOKEN", strconv.FormatInt(int64(token), 10)))
		asking := start(t, dir, env, append([]string{"elect", "k", "--step-down"}, tc.asks...)...)
		eventually(t, "advice", func() bool { return says.MatchString(asking.stderr.String()) })
		lab.OK(t, os.WriteFile(filepath.Join(dir, "over"), nil, 0o600))
		asking.ends(0)
		lab.Want(t, "times that it says not resigned", strings.Count(asking.stderr.String(), "not resigned"), 1)
		holder.signal(syscall.SIGKILL)
	})
}
