//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/creack/pty"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// screen is a process on its own pseudo-terminal. The field "text" collects all text that the
// process writes to the terminal.
type screen struct {
	*process
	tty  *os.File
	done chan struct{}

	mu   sync.Mutex
	text string
}

func onTerminal(t *testing.T, dir string, env []string, args ...string) *screen {
	t.Helper()
	return programOnTerminal(t, dir, env, "leasehold", args...)
}

// programOnTerminal starts a program on a new pseudo-terminal of 24 lines and 100 columns.
func programOnTerminal(t *testing.T, dir string, env []string, program string, args ...string) *screen {
	t.Helper()
	s := &screen{process: processOf(t, dir, env, program, args...), done: make(chan struct{})}
	tty := lab.Must(pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: 100}))(t)
	s.tty = tty
	t.Cleanup(func() {
		s.kill()
		_ = tty.Close()
		<-s.done
	})
	go func() {
		defer close(s.done)
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			s.mu.Lock()
			s.text += string(b[:n])
			s.mu.Unlock()
			if err != nil {
				return // the last process on the terminal has ended
			}
		}
	}()
	return s
}

func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// shows waits until the text on the screen matches the pattern.
func (s *screen) shows(pattern string) {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the screen: %q", s.shown())
		}
	})
	eventually(s.t, "the screen shows "+pattern, func() bool { return re.MatchString(s.shown()) })
}

func (s *screen) types(keys string) {
	s.t.Helper()
	lab.Must(s.tty.WriteString(keys))(s.t)
}

const ctrlC, ctrlZ = "\x03", "\x1a"

func TestRunShowsWaitInSingleTerminalLineOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	holder, _, _ := atWork(t, dir, env, "run", "k")
	s := onTerminal(t, dir, env, "run", "k", "--", "echo", "mine")
	s.shows(`^leasehold: waiting for k, held by [^ ]+/[a-z2-7]{4} for \d+s, number 1 in the queue\r\x1b\[Kleasehold: waiting for k, held by [^ ]+ for \d+s, number 1 in the queue`)
	lab.OK(t, pty.Setsize(s.tty, &pty.Winsize{Rows: 24, Cols: 20}))
	s.shows(`\r\x1b\[Kleasehold: waiting \r`)
	lab.OK(t, pty.Setsize(s.tty, &pty.Winsize{Rows: 24, Cols: 100}))
	holder.signal(syscall.SIGTERM)
	s.shows(`\r\x1b\[Kleasehold: granted k after \d+s, token \d+\r\nmine\r\n`)
	s.ends(0)
}

func TestCtrlCReachesCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	s := onTerminal(t, dir, env, "run", "k", "--", "sh", "-c", `trap 'echo told; exit 5' INT; echo ready; while :; do sleep 0.01; done`)
	s.shows(`^ready\r\n`)
	s.types(ctrlC)
	s.shows(`told\r\n`)
	s.ends(5)
}

func TestCtrlZSuspendsLeaseholdAndCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	lab.ParallelVariants(t, map[string]string{"one run": "", "run in a run": "leasehold run outer -- "}, func(t *testing.T, nested string) {
		dir, env := tableEnv(t)
		s := programOnTerminal(t, dir, env, "sh", "-c", "set -m\n"+nested+
			`leasehold run k -- sh -c 'echo $$ >pid; echo $PPID >ppid; read answer; echo "it was $answer"; read answer; echo "and $answer"'
			echo stopped; read go; fg; echo "code $?"`)
		cmd := fileNumber(t, filepath.Join(dir, "pid"))
		leasehold := fileNumber(t, filepath.Join(dir, "ppid"))
		s.types("yes\n")
		s.shows(`it was yes\r\n`)
		s.types(ctrlZ)
		s.shows(`stopped\r\n`)
		eventually(t, "CMD and leasehold are suspended", func() bool { return isStopped(cmd) && isStopped(leasehold) })
		s.types("go\n")
		s.types("again\n")
		s.shows(`and again\r\ncode 0\r\n`)
		s.ends(0)
	})
}

// Here leasehold has a terminal, but no shell with job control has started leasehold. An
// example is ssh -t HOST leasehold run. If Ctrl-Z suspended CMD, nothing could resume
// CMD, and KEY would stay held.
func TestCtrlZIsIgnoredWithoutJobControlOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	s := onTerminal(t, dir, env, "run", "k", "--", "sh", "-c", `read answer; echo "it was $answer"; read answer; echo "and $answer"`)
	s.types("yes\n")
	s.shows(`it was yes\r\n`)
	s.types(ctrlZ)
	s.shows(`\^Z`)
	s.types("again\n")
	s.shows(`and again\r\n`)
	s.ends(0)
}

// isStopped reports whether all threads of a process are suspended (by SIGSTOP or Ctrl-Z).
func isStopped(pid int) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return err == nil && len(stats) > 0 && !slices.ContainsFunc(stats, func(path string) bool {
		b, _ := os.ReadFile(path) // empty if the thread has ended
		_, rest, _ := strings.Cut(string(b), ") ")
		return !strings.HasPrefix(rest, "T")
	})
}

func TestColumnsOfListOnTerminalAreAlignedOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	start(t, dir, env, "acquire", "short", "-l", "1s", "-f", "grant").ends(0)
	start(t, dir, env, "acquire", "a/much/longer/key", "-l", "90s", "-f", "other").ends(0)
	shows := func(patterns []string, args ...string) {
		t.Helper()
		s := onTerminal(t, dir, env, args...)
		s.ends(0)
		for _, pattern := range patterns {
			s.shows(pattern)
		}
	}
	shows([]string{`^KEY                OWNER +HELD  LEASE  TOKEN\r\n` +
		`a/much/longer/key  [^ ]+/\d+/[a-z2-7]{4} +(\ds |\d\ds)   1m30s  \d{16}\r\n` +
		`short              [^ ]+/\d+/[a-z2-7]{4} +(\ds |\d\ds)   1s     \d{16}\r\n$`}, "ls")
	shows([]string{`observing 1 holder, at most \ds left`, `\x1b\[31mdead\x1b\[0m\r\n$`}, "ls", "--check", "short")
	s := onTerminal(t, dir, append(env, "NO_COLOR=1"), "ls", "--check", "short")
	s.ends(0)
	s.shows(` dead\r\n$`)
	shows([]string{`^leasehold: no locks are held under nothing/ in `}, "ls", "nothing/")
	shows([]string{`key        a/much/longer/key\r\nstate      held\r\n`}, "get", "a/much/longer/key")
	start(t, dir, env, "acquire", "deploy", "--data", "deploying v42", "-f", "third").ends(0)
	shows([]string{`[a-z2-7]{4}: deploying v42  (\ds |\d\ds)   20s    \d{16}\r\n$`}, "ls", "deploy")
	start(t, dir, env, "run", "done", "--", "true").ends(0)
	shows([]string{`\r\nexpiresAt   \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\r\nformer      [^\r]+, released\r\n$`}, "get", "done")
}

func TestOutputFitsTerminalWidthOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir := lab.Must(os.MkdirTemp("", ""))(t) //nolint:usetesting // t.TempDir has the name of the test in it, and the path must fit a line
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	env := lab.Must(withTable(dir))(t)
	key := strings.Repeat("tenant/", 9) + "job.1"
	start(t, dir, append(env, "LEASEHOLD_OWNER="+strings.Repeat("o", 50)), "acquire", key, "-f", "grant").ends(0)
	fits := func(args ...string) string {
		t.Helper()
		s := onTerminal(t, dir, append(env, "NO_COLOR=1"), args...)
		<-s.done
		for line := range strings.Lines(regexp.MustCompile(`[^\r\n]*\r\x1b\[K`).ReplaceAllString(s.shown(), "")) {
			line = strings.TrimRight(line, "\r\n")
			if len([]rune(line)) > 100 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: %d columns: %s", args[0], len([]rune(line)), line)
			}
		}
		return s.shown()
	}
	for _, args := range [][]string{{"ls"}, {"ls", "-a"}} {
		lab.Want(t, "lines for a header and a lock", strings.Count(fits(args...), "\r\n"), 2)
	}
	fits("doctor", "--layout", "dynamo-dlm")
	lab.Want(t, "lines of an error", strings.Count(fits("ls", "-t", "my locks"), "\r\n"), 2)
}

func TestListWithCheckFlagShowsResultsAfterCtrlCOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	start(t, dir, env, "acquire", "later", "-l", "1h", "-f", "grant").ends(0)
	start(t, dir, env, "acquire", "short", "-l", "1s", "-f", "other").ends(0)
	s := onTerminal(t, dir, env, "ls", "--check")
	s.shows(`observing 2 holders for up to 1m0s: at most \d+ requests`)
	s.shows(`KEY    OWNER[^\n]*\r\nshort  [^\n]*dead`)
	s.types(ctrlC)
	s.ends(130)
	s.shows(`later  [^\n]* unknown\r\n`)
}

func TestBreakAsksForConfirmationOnAnyBackend(t *testing.T) {
	t.Parallel()
	for answer, code := range map[string]int{"y\n": 0, "\n": 1, "no\n": 1, ctrlC: 130} {
		t.Run(strconv.Quote(answer), func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			start(t, dir, env, "acquire", "k", "-l", "1s", "-f", "grant").ends(0)
			s := onTerminal(t, dir, env, "break", "k")
			s.shows(`state      held\r\n`)
			s.shows(`The holder has not renewed for one lease \(1s\): it is dead or stuck\.\r\nBreak the grant of k\? \[y/N\] $`)
			s.types(answer)
			s.ends(code)
			want := "held"
			if code == 0 {
				s.shows(`broke the grant of k to [^ ]+ \(token \d+\)\r\n$`)
				want = "released"
				ls := onTerminal(t, dir, env, "ls", "-a")
				ls.ends(0)
				ls.shows(`STATE\r\nk [^\n]* released, broken by [^\n]* at \d{4}-[-0-9]+ [0-9:]+\r\n$`)
			}
			start(t, dir, env, "get", "k").ends(0).printed("state\t" + want + "\n")
		})
	}
}

func TestListShowsExpiryIfRecordContainsNoLeaseDuration(t *testing.T) {
	t.Parallel()
	for _, f := range foreigners() {
		if f.layout.Capabilities().Expiry != layout.WallClock {
			continue
		}
		t.Run(f.layout.Name(), func(t *testing.T) {
			env := f.holds(t).env
			s := onTerminal(t, t.TempDir(), env, "ls")
			s.ends(0)
			s.shows(`OWNER +HELD  EXPIRES  +TOKEN\r\njob [^\n]*` + f.name + ` +\d+s ago +\r\n$`)
			s = onTerminal(t, t.TempDir(), env, "break", "job")
			s.shows(`The record has expired \(\d+s ago\): its holder is dead or stuck\.\r\nBreak the grant of job[^\n]*\? \[y/N\] $`)
			s.types("y\n")
			s.ends(0)
			s.shows(`broke the grant of job[^\n]* to ` + f.name + `\r\n$`)
		})
	}
}

func TestForgetCommandRemovesOnlyUnchangedRecordOnAnyBackend(t *testing.T) {
	t.Parallel()
	lab.ParallelVariants(t, map[string][]string{
		"held":     {"acquire", "k", "-f", "grant"},
		"was held": {"run", "-n", "k", "--", "true"},
	}, func(t *testing.T, meanwhile []string) {
		dir, env := tableEnv(t)
		start(t, dir, env, "run", "-n", "k", "--", "true").ends(0)
		s := onTerminal(t, dir, env, "forget", "k")
		s.shows(`k is free\. [^?]*Forget k, if nothing has changed\? \[y/N\] $`)
		start(t, dir, env, meanwhile...).ends(0)
		before := start(t, dir, env, "ls", "-a")
		before.ends(0)
		s.types("y\n")
		s.ends(1)
		s.shows(`leasehold: record has changed meanwhile: k: nothing was removed: check\s+with leasehold get k\r\n$`)
		after := start(t, dir, env, "ls", "-a")
		after.ends(0)
		lab.Want(t, "records", after.stdout.String(), before.stdout.String())
	})
}

func TestForgetAsksForConfirmationOnAnyBackend(t *testing.T) {
	t.Parallel()
	for answer, code := range map[string]int{"y\n": 0, "\n": 1, ctrlC: 130} {
		t.Run(strconv.Quote(answer), func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			start(t, dir, env, "run", "k", "--data", "x", "--", "true").ends(0)
			s := onTerminal(t, dir, env, "forget", "k")
			s.shows(`k has data or attributes of yours, which are removed as well\r\nk is free\. Tokens start again`)
			s.types(answer)
			s.ends(code)
			if code == 0 {
				s.shows(`forgot k\r\n$`)
			}
			start(t, dir, env, "get", "k").ends(map[bool]int{true: 1, false: 0}[code == 0])
		})
	}
}

func TestBreakCommandSuggestsRenamingAttributeThatDamagesRecord(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	putItem(t, db, map[string]types.AttributeValue{
		"key": s("live"), "kind": s("invoice"), "ownerName": s("a-peer"), "leaseDuration": s("20000"), "recordVersionNumber": s("1"),
	})
	s := onTerminal(t, t.TempDir(), env, "break", "live")
	s.shows(`Without that attribute it is a held lock: rename the attribute\s+instead\.`)
	s.types("n\n")
	s.ends(1)
	start(t, t.TempDir(), env, "break", "live").ends(2) // exit code 2: the record still exists, and leasehold break cannot ask for confirmation, because it has no terminal
}
