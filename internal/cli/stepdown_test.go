//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// After the request to step down, the CMD of the first leader continues for longer than the
// grace period. leasehold must not kill it, because the last line that CMD writes would be
// lost.
func TestStepDownStopsCMDAndCampaignsAgainOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	first := start(t, dir, owned(env, "one"), "elect", "-l", "3s", "-g", "100ms", "k", "--", "sh", "-c",
		`trap 'sleep 1; echo finished >>work; exit 7' TERM; echo $LEASEHOLD_TOKEN >>one; while :; do sleep 0.01; done`)
	token := fileNumber(t, filepath.Join(dir, "one"))
	second := start(t, dir, owned(env, "two"), "elect", "-l", "3s", "k", "--", "sh", "-c", `echo $LEASEHOLD_TOKEN >two; echo begun >>work; `+works)
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
	second.endsBy(syscall.SIGTERM)
	eventually(t, "another term of the first", func() bool {
		terms, err := os.ReadFile(filepath.Join(dir, "one"))
		return err == nil && strings.HasSuffix(string(terms), "\n"+strconv.Itoa(token+2)+"\n")
	})
	first.signal(syscall.SIGTERM)
	first.ends(7)
}

// CMD has ended, but leasehold holds the key until the processes that CMD left running have
// ended. A request to step down stops only these processes.
func TestStepDownAfterExitOfCMDKeepsExitCodeOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	leader := start(t, dir, env, "elect", "-l", "6s", "k", "--", "sh", "-c",
		`echo ran >>ran; echo $$ >pid; sleep 300 >left.out 2>&1 & echo $! >left; exit 5`)
	cmd, left := fileNumber(t, filepath.Join(dir, "pid")), fileNumber(t, filepath.Join(dir, "left"))
	eventually(t, "CMD has ended", func() bool { return isDead(cmd) })
	start(t, dir, env, "elect", "k", "--step-down").ends(0)
	leader.ends(5)
	dead(t, left, "what it left running lives")
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); err != nil || string(ran) != "ran\n" {
		t.Errorf("%q, %v", ran, err)
	}
	leader.said("k: asked to step down when CMD had ended by itself: not campaigning again\n")
}

func TestStepDownAdvisesBreakIfLeaderStaysOnAnyTable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		holds, asks []string
		says        string
	}{
		"run": {[]string{"run"}, nil,
			`\nleasehold: waiting for one/\w+, who leads k, to step down: asked \ds ago: it has not resigned: to take its term at once, leasehold break k --token TOKEN\n`},
		"a leader that works on": {[]string{"elect"}, nil, `: it has not resigned: to take its term at once, leasehold break k --token TOKEN`},
		"as an event": {[]string{"run"}, []string{"--json"},
			`\n\{"time":"[^"]+","event":"waiting","key":"k","holder":\{[^}]*"owner":"one/\w+"[^}]*\},"lastsMs":\d+,"advice":"it has not resigned: to take its term at once, leasehold break k --token TOKEN"\}\n`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			holder := start(t, dir, owned(env, "one"), append(tc.holds, "-l", "1s", "-g", "100ms", "k", "--", "sh", "-c",
				`trap : TERM; echo $LEASEHOLD_TOKEN >one; while [ ! -e over ]; do sleep 0.05; done`)...)
			token := fileNumber(t, filepath.Join(dir, "one"))
			says := regexp.MustCompile(strings.ReplaceAll(tc.says, "TOKEN", strconv.FormatInt(int64(token), 10)))
			asking := start(t, dir, env, append([]string{"elect", "k", "--step-down"}, tc.asks...)...)
			eventually(t, "advice", func() bool { return says.MatchString(asking.stderr.String()) })
			lab.OK(t, os.WriteFile(filepath.Join(dir, "over"), nil, 0o600))
			asking.ends(0)
			if got := strings.Count(asking.stderr.String(), "not resigned"); got != 1 {
				t.Errorf("it says so %d times: %s", got, &asking.stderr)
			}
			holder.signal(syscall.SIGKILL)
		})
	}
}

func TestStepDownOnTerminalShowsLeaderOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	holder := start(t, dir, owned(env, "one"), "run", "-l", "2s", "k", "--", "sh", "-c", `echo $LEASEHOLD_TOKEN >one; `+works)
	fileNumber(t, filepath.Join(dir, "one"))
	s := onTerminal(t, dir, env, "elect", "k", "--step-down")
	s.shows(`waiting for one/\w+, who leads k, to step down: asked 1s ago`)
	s.shows(`to step down: asked \ds\s+ago:\s+it\s+has\s+not\s+resigned:\s+to\s+take\s+its\s+term\s+at\s+once,\s+leasehold\s+break\s+k\s+--token`)
	s.types(ctrlC)
	s.ends(130)
	holder.endsBy(syscall.SIGTERM)
}
