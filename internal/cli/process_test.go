//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/leasehold-go/leasehold/table"
)

// process is a running command.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout output
	stderr output
}

// output collects the output of a command.
type output struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// start starts the command in dir. The command is killed when the test ends.
func start(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	p := processOf(t, dir, env, "leasehold", args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.start()
	return p
}

// processOf returns a process that has not been started and whose output is discarded.
func processOf(t *testing.T, dir string, env []string, program string, args ...string) *process {
	p := &process{t: t, cmd: exec.Command(program, args...)}
	p.cmd.Dir, p.cmd.Env = dir, env
	p.cmd.WaitDelay = patience // processes that CMD has started may keep pipes open
	return p
}

// start starts the process, which is killed when the test ends.
func (p *process) start() {
	p.t.Helper()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.kill)
}

// kill kills the process, unless it has ended.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits until the process has ended, and returns its exit code.
func (p *process) wait() int {
	p.t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		if p.cmd.ProcessState == nil {
			p.t.Fatalf("%v cannot be waited for: %v", p.cmd.Args, err)
		}
		return exitCode(err)
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-done
		p.t.Fatalf("%v has not ended within %v\nstderr: %s", p.cmd.Args, patience, &p.stderr)
		return -1
	}
}

// ends waits until the process has ended, and checks its exit code.
func (p *process) ends(code int) {
	p.t.Helper()
	if got := p.wait(); got != code {
		p.t.Fatalf("%v: %v, want exit code %d\nstdout: %s\nstderr: %s", p.cmd.Args, p.cmd.ProcessState, code, &p.stdout, &p.stderr)
	}
}

// said checks that each text is on stderr.
func (p *process) said(texts ...string) {
	p.t.Helper()
	for _, want := range texts {
		if got := p.stderr.String(); !strings.Contains(got, want) {
			p.t.Errorf("%v: %q is not in %s", p.cmd.Args, want, got)
		}
	}
}

// fileNumber waits until a CMD has written a number to a file, and returns the number.
func fileNumber(t *testing.T, path string) int {
	t.Helper()
	eventually(t, "a number in "+path, func() bool {
		b, err := os.ReadFile(path)
		return err == nil && strings.HasSuffix(string(b), "\n")
	})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// isDead reports whether the process does not exist, or is a zombie.
func isDead(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

// dead fails the test with the message otherwise unless the process is dead.
func dead(t *testing.T, pid int, otherwise string) {
	t.Helper()
	if !isDead(pid) {
		t.Error(otherwise)
	}
}

func tableEnv(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	env, err := withTable(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, env
}

// works is a CMD that writes its process id to a file and works until it is stopped. It
// starts sleep as a second process of its group.
const works = `echo $$ >pid; sleep 300 & echo $! >pid2; wait`

func TestSignalsAreForwardedToCMDOnAnyTable(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "ALRM": syscall.SIGALRM,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(sig) {
				t.Skip("the signal is ignored here, as by nohup: a shell cannot trap what it was started to ignore (POSIX, trap)")
			}
			dir, env := tableEnv(t)
			p := start(t, dir, env, "run", "k", "--", "sh", "-c",
				fmt.Sprintf(`trap 'echo got %s; exit 40' %s; echo 1 >ready; while :; do sleep 0.01; done`, name, name))
			fileNumber(t, filepath.Join(dir, "ready"))
			p.signal(sig)
			p.ends(40)
			if got := p.stdout.String(); got != "got "+name+"\n" {
				t.Errorf("CMD said %q", got)
			}
		})
	}
}

func TestExitCodeShowsSignalThatKilledCMDOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	p := start(t, dir, env, "run", "k", "--", "sh", "-c", works)
	child := fileNumber(t, filepath.Join(dir, "pid2"))
	p.signal(syscall.SIGTERM)
	p.ends(128 + int(syscall.SIGTERM))
	dead(t, child, "the signal did not reach CMD's group")
}

func TestLockedMetricsFileDoesNotDelayRunOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	f, err := os.Create(filepath.Join(dir, "m.prom"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	start(t, dir, env, "acquire", "k").ends(0)
	p := start(t, dir, env, "run", "-n", "--metrics", "m.prom", "k", "--", "true")
	p.ends(75)
	p.said("the metrics could not be written to m.prom: ")
}

func TestSuggestedCommandQuotesEscapeSequencesOnAnyTable(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skipf("not every sh reads $'...' yet: %v", err)
	}
	dir, env := tableEnv(t)
	for _, key := range []string{"a\nb", "red\x1b[31m", "\u202etxt", "it's\t\\1\x07" + "2", "\u0085é 本"} {
		start(t, dir, env, "acquire", key).ends(0)
		p := start(t, dir, env, "break", key)
		p.ends(2)
		said := strings.TrimSuffix(p.stderr.String(), "\n")
		if strings.ContainsFunc(said, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("a terminal would obey %q", said)
		}
		_, typed, _ := strings.Cut(said, "to break this grant type ")
		bash := processOf(t, dir, env, "bash", "-c", typed)
		bash.cmd.Stdout, bash.cmd.Stderr = &bash.stdout, &bash.stderr
		bash.start()
		bash.ends(0)
	}
}

func TestSignalEndsReadOfDataOnAnyTable(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "k", "--data", "@data", "--", "true"}, {"acquire", "k", "--data", "@data"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			fifo := filepath.Join(dir, "data")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			p := start(t, dir, env, args...)
			writer, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns once leasehold has opened the FIFO for reading
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			p.signal(syscall.SIGINT)
			p.wait()
			if by := p.cmd.ProcessState.Sys().(syscall.WaitStatus); by.Signal() != syscall.SIGINT {
				t.Errorf("it ended by %v", p.cmd.ProcessState)
			}
		})
	}
}

func TestSignalBeforeCMDRunsReachesCMDOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	p := start(t, dir, env, "run", "k", "--", "sleep", "300")
	eventually(t, "the watchdog runs", func() bool { return len(childrenOf(t, p.cmd.Process.Pid)) > 0 })
	p.signal(syscall.SIGUSR1) // must be held back for CMD: the process at the gate is still leasehold, which would ignore this signal
	p.ends(128 + int(syscall.SIGUSR1))
}

// The test compares CMD with the same program started without leasehold.
func TestCMDStartsAsWithoutLeaseholdOnAnyTable(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("what a process was started with is read in /proc")
	}
	dir, env := tableEnv(t)
	f, err := os.Create(filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const tells = `tr '\0' ' ' </proc/$$/cmdline; test $$ = $(cut -d' ' -f5 /proc/$$/stat) && echo leads
		(cd /proc/self/fd && echo *); readlink /proc/self/fd/3 /proc/self/fd/6; ulimit -Sn; ulimit -Hn; umask
		grep -E '^(Sig(Blk|Ign)|ShdPnd|NoNewPrivs|Cap)' /proc/self/status; env | grep -v ^LEASEHOLD_ | sort`
	tell := func(before ...string) string {
		t.Helper()
		args := append(before, "sh", "-c", tells, "dash", "-x", "--", "", "two words")
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = dir, append(env, "EMPTY=", "WORDS=two words")
		cmd.Stdin, cmd.Stderr = f, f
		cmd.ExtraFiles = []*os.File{f, f, nil, f}
		if len(before) == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return string(out)
	}
	want := tell()
	if got := tell("leasehold", "run", "k", "--"); got != want {
		t.Errorf("under leasehold:\n%s\nwithout:\n%s", got, want)
	}
}

func TestCMDRunsIfWatchdogCannotStartOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	p := processOf(t, dir, env, "leasehold-alone", "run", "k", "--", "sh", "-c", "exit 7")
	p.cmd.Stderr = &p.stderr
	p.start()
	p.ends(7)
	p.said("cannot start the watchdog process: ")
}

func TestSignalEndsWaitOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	holder := start(t, dir, env, "run", "k", "--", "sh", "-c", works)
	fileNumber(t, filepath.Join(dir, "pid2"))
	waiting, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	p := processOf(t, dir, env, "leasehold", "run", "k", "--", "true")
	p.cmd.Stderr = w
	p.start()
	w.Close()
	if _, err := waiting.Read(make([]byte, 1)); err != nil { // returns when the command reports that it is waiting for the key
		t.Fatal(err)
	}
	p.signal(syscall.SIGINT)
	p.ends(128 + int(syscall.SIGINT))
	holder.signal(syscall.SIGTERM)
	holder.ends(128 + int(syscall.SIGTERM))
	start(t, dir, env, "run", "-n", "k", "--", "true").ends(0)
}

func TestKillOfLeaseholdEndsCMDAndItsGroupOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	cmd := exec.Command("leasehold", "run", "k", "--", "sh", "-c", `sleep 300 & echo $$ $!; wait`)
	cmd.Dir, cmd.Env = dir, env
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var parent, child int
	_, err = fmt.Fscanln(stdout, &parent, &child)
	_ = cmd.Process.Kill() // kill leasehold only after CMD has printed its line
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "CMD is dead", func() bool { return isDead(parent) })
	eventually(t, "the rest of its group is dead", func() bool { return isDead(child) })
	_ = cmd.Wait()
}

// The lock is on a server, not in a local store. If a process is stopped during a request
// to a local store, the file stays locked, and no process can acquire anything.
func TestCMDOfSuspendedLeaseholdIsKilledBeforeNextCMDStarts(t *testing.T) {
	t.Parallel()
	dir, server := t.TempDir(), newProxy(t)
	env := append(bare(dir), "LEASEHOLD_TABLE=locks", "AWS_ENDPOINT_URL_DYNAMODB="+server.url)
	p := start(t, dir, env, "run", "-l", "2s", "k", "--", "sh", "-c", "trap '' TERM; "+works)
	cmd, child := fileNumber(t, filepath.Join(dir, "pid")), fileNumber(t, filepath.Join(dir, "pid2"))
	p.signal(syscall.SIGSTOP)
	next := start(t, dir, env, "run", "k", "--", "sh", "-c",
		fmt.Sprintf("for p in %d %d; do test -e /proc/$p/stat && cat /proc/$p/stat; done; true", cmd, child))
	next.ends(0)
	for _, line := range strings.Split(strings.TrimSpace(next.stdout.String()), "\n") {
		if line != "" && !strings.Contains(line, ") Z ") {
			t.Errorf("it still ran when the next CMD did: %s", line)
		}
	}
	p.signal(syscall.SIGCONT)
	p.ends(123)
	p.said("leasehold: lost k (token ", "; CMD was stopped")
}

// proxy is a server that can be made to hang.
type proxy struct {
	*faulty
	hang chan struct{} // once closed, the server accepts connections and never answers
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	hang, leave := make(chan struct{}), make(chan struct{})
	f := newFaulty(t, table.Spec{}, func(_ string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-hang:
			<-leave
		default:
			next.ServeHTTP(w, r)
		}
	})
	t.Cleanup(func() { close(leave) }) // runs before the server is closed
	return &proxy{f, hang}
}

// events parses the events of run --json on stderr, by kind.
func events(t *testing.T, stderr string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, line := range strings.Split(strings.TrimSpace(stderr), "\n") {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		kind, ok := e["event"].(string)
		if !ok {
			kind = fmt.Sprint("error ", e["error"])
		}
		out[kind] = e
	}
	return out
}

func TestCMDIsStoppedBeforeTrustEndsIfServerHangs(t *testing.T) {
	t.Parallel()
	dir, server := t.TempDir(), newProxy(t)
	p := start(t, dir, bare(dir), "run", "--json", "-l", "4s", "-g", "1s", "-t", "locks", "--endpoint-url", server.url, "k", "--",
		"sh", "-c", `exec 2>&-; trap 'date +%s%N >told; exit 5' TERM; date +%s%N >began; while :; do sleep 0.01; done`)
	fileNumber(t, filepath.Join(dir, "began"))
	hung := time.Now()
	close(server.hang)
	p.ends(123)
	told := time.Unix(0, int64(fileNumber(t, filepath.Join(dir, "told"))))
	seen := events(t, p.stderr.String())
	for _, kind := range []string{"granted", "renew_error", "stopping", "exited", "error lost"} {
		if seen[kind] == nil {
			t.Fatalf("no %q among %v", kind, seen)
		}
	}
	// Trust ends 3.6 s after the last answered request was sent, and the stop signal is
	// sent 1 s earlier. The first answered request was sent before CMD started, and the
	// last one before the server hung.
	granted, err := time.Parse(time.RFC3339, fmt.Sprint(seen["granted"]["time"]))
	took, ok := seen["granted"]["tookMs"].(float64)
	if err != nil || !ok {
		t.Fatalf("granted: %v", seen["granted"])
	}
	sought := granted.Add(-time.Duration(took+1) * time.Millisecond)
	if told.Before(sought.Add(2600*time.Millisecond)) || told.After(hung.Add(3600*time.Millisecond)) {
		t.Errorf("CMD was told %v after the lock was sought and %v after the server hung", told.Sub(sought), told.Sub(hung))
	}
}

func TestCMDThatIgnoresSignalIsKilledWhenTrustEnds(t *testing.T) {
	t.Parallel()
	dir, server := t.TempDir(), newProxy(t)
	p := start(t, dir, bare(dir), "run", "-l", "6s", "-s", "USR1", "-t", "locks", "--endpoint-url", server.url, "k", "--",
		"sh", "-c", `trap 'echo told' USR1; echo $$ >pid; while :; do sleep 0.01; done`)
	cmd := fileNumber(t, filepath.Join(dir, "pid"))
	close(server.hang)
	p.ends(123)
	dead(t, cmd, "CMD lives")
	if got := p.stdout.String(); got != "told\n" {
		t.Errorf("CMD said %q", got)
	}
}

func TestBrokenLockStopsCMDAtNextRenewalOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	p := start(t, dir, env, "run", "-l", "4s", "k", "--", "sh", "-c", `echo $LEASEHOLD_TOKEN >token; `+works)
	token := fileNumber(t, filepath.Join(dir, "token"))
	fileNumber(t, filepath.Join(dir, "pid2"))
	start(t, dir, append(env, "LEASEHOLD_OWNER=ops/ada"), "break", "k", "--yes", "--token", strconv.Itoa(token), "--reason", "its host is gone").ends(0)
	p.ends(123)
	says := regexp.MustCompile(`: broken by ops/ada/[a-z2-7]{4} at \d\d:\d\d:\d\d: "its host is gone"; CMD was stopped`)
	if got := p.stderr.String(); !says.MatchString(got) {
		t.Errorf("stderr: %s", got)
	}
}

// watchdogOf returns the process id of the watchdog: the child other than CMD.
func watchdogOf(t *testing.T, supervisor, cmd int) int {
	t.Helper()
	for _, child := range childrenOf(t, supervisor) {
		if child != cmd {
			return child
		}
	}
	t.Fatal("there is no watchdog")
	return 0
}

func TestKillOfLeaseholdEndsCMDDespiteStoppedWatchdogOnAnyTable(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("a signal at the parent's death is Linux's")
	}
	dir, env := tableEnv(t)
	p := start(t, dir, env, "run", "k", "--", "sh", "-c", works)
	cmd, child := fileNumber(t, filepath.Join(dir, "pid")), fileNumber(t, filepath.Join(dir, "pid2"))
	watchdog := watchdogOf(t, p.cmd.Process.Pid, cmd)
	// Stop leasehold first. Its threads stop one after the other, and a thread that still
	// runs would replace a stopped watchdog.
	p.signal(syscall.SIGSTOP)
	eventually(t, "leasehold stands still", func() bool { return isStopped(p.cmd.Process.Pid) })
	if err := syscall.Kill(watchdog, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its watchdog stands still", func() bool { return isStopped(watchdog) })
	p.signal(syscall.SIGKILL)
	eventually(t, "CMD is dead", func() bool { return isDead(cmd) })
	if err := syscall.Kill(watchdog, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rest of its group is dead", func() bool { return isDead(child) })
}

func TestCMDIsStoppedInTimeAfterWatchdogIsKilled(t *testing.T) {
	t.Parallel()
	dir, server := t.TempDir(), newProxy(t)
	p := start(t, dir, bare(dir), "run", "-l", "3s", "-t", "locks", "--endpoint-url", server.url, "k", "--", "sh", "-c", works)
	cmd := fileNumber(t, filepath.Join(dir, "pid"))
	fileNumber(t, filepath.Join(dir, "pid2"))
	if err := syscall.Kill(watchdogOf(t, p.cmd.Process.Pid, cmd), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	close(server.hang)
	p.ends(123)
	p.said("the watchdog process has died")
}

// If the watchdog is killed or stopped, leasehold starts another. When leasehold is then
// killed, the new watchdog stops CMD and its children.
func TestDeadOrStoppedWatchdogIsReplacedOnAnyTable(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]syscall.Signal{"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			p := start(t, dir, env, "run", "k", "--", "sh", "-c", works)
			cmd, child := fileNumber(t, filepath.Join(dir, "pid")), fileNumber(t, filepath.Join(dir, "pid2"))
			t.Cleanup(func() { _ = syscall.Kill(-cmd, syscall.SIGKILL) }) // kills children that survive if the test fails
			if err := syscall.Kill(watchdogOf(t, p.cmd.Process.Pid, cmd), fault); err != nil {
				t.Fatal(err)
			}
			eventually(t, "another watchdog", func() bool {
				return strings.Contains(p.stderr.String(), "the watchdog process has died, or was stopped: started another")
			})
			p.signal(syscall.SIGKILL)
			eventually(t, "CMD is dead", func() bool { return isDead(cmd) })
			eventually(t, "the rest of its group is dead", func() bool { return isDead(child) })
		})
	}
}

// Each watchdog process is killed, as a memory limit may do.
func TestWatchdogRunsWithinLeaseholdIfItsProcessesAreKilled(t *testing.T) {
	t.Parallel()
	dir, server := t.TempDir(), newProxy(t)
	p := start(t, dir, bare(dir), "run", "-l", "3s", "-t", "locks", "--endpoint-url", server.url, "k", "--", "sh", "-c", works)
	cmd, child := fileNumber(t, filepath.Join(dir, "pid")), fileNumber(t, filepath.Join(dir, "pid2"))
	deaths := 0
	eventually(t, "no other watchdog", func() bool {
		said := p.stderr.String()
		if strings.Count(said, "started another") == deaths && !strings.Contains(said, ": it has died 10 times") {
			deaths++
			if err := syscall.Kill(watchdogOf(t, p.cmd.Process.Pid, cmd), syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		return strings.Contains(said, "CMD is stopped in time only while leasehold itself runs: it has died 10 times")
	})
	close(server.hang)
	p.ends(123)
	dead(t, child, "what CMD has started lives")
}

func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var children []int
	for _, path := range threads {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(b)) {
			n, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, n)
		}
	}
	return children
}

func TestSixteenProcessesNeverHoldKeyTogetherOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	leasehold, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	const processes, sections = 16, 200
	// The section creates the file only if the file does not exist. So a section fails if
	// it starts while another section runs.
	const section = `set -C; : >inside && rm inside && echo x >>sections`
	left := make(chan struct{}, sections)
	for range sections {
		left <- struct{}{}
	}
	close(left)
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			for range left {
				var stderr bytes.Buffer
				cmd := exec.Command(leasehold, "run", "-q", "k", "--", "sh", "-c", section)
				cmd.Dir, cmd.Env, cmd.Stderr = dir, env, &stderr
				if err := cmd.Run(); err != nil {
					t.Errorf("%v: %s", err, &stderr)
				}
			}
		})
	}
	wg.Wait()
	b, err := os.ReadFile(filepath.Join(dir, "sections"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), "x"); n != sections {
		t.Errorf("%d sections of %d", n, sections)
	}
}

// A line break in a key would make the lines of LEASEHOLD_KEYS differ from the lines of
// LEASEHOLD_TOKENS.
func TestKeyListRejectsKeyWithLineBreakOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	p := start(t, dir, env, "run", "-k", "a", "-k", "b\nc", "--", "true")
	p.ends(125)
	p.said(`KEY "b\nc" has a line break`)
	start(t, dir, env, "run", "b\nc", "--", "true").ends(0)
	start(t, dir, env, "run", "--any", "-k", "a", "-k", "b\nc", "--", "true").ends(0)
}
