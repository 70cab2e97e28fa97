//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/table"
)

// process is a process of a test. It runs leasehold or another program.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout output
	stderr output
}

// output collects what a process writes to one of its output streams.
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

// start starts the command in the directory dir. A cleanup function kills the process when
// the test ends.
func start(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	return startProgram(t, dir, env, "leasehold", args...)
}

// startProgram starts the given program in the directory dir. A cleanup function kills the
// process when the test ends.
func startProgram(t *testing.T, dir string, env []string, program string, args ...string) *process {
	t.Helper()
	p := processOf(t, dir, env, program, args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.start()
	return p
}

// processOf prepares a process that will run the given program, but does not start the
// process. The output is discarded unless the caller sets another destination.
func processOf(t *testing.T, dir string, env []string, program string, args ...string) *process {
	p := &process{t: t, cmd: exec.Command(program, args...)}
	p.cmd.Dir, p.cmd.Env = dir, env
	p.cmd.WaitDelay = patience // limits the wait for pipes that leftover processes keep open
	return p
}

// start starts the process. A cleanup function kills the process when the test ends.
func (p *process) start() {
	p.t.Helper()
	lab.OK(p.t, p.cmd.Start())
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
	lab.OK(p.t, p.cmd.Process.Signal(sig))
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

// ends waits until the process has ended, and checks its exit code. It returns the process.
func (p *process) ends(code int) *process {
	p.t.Helper()
	if got := p.wait(); got != code {
		p.t.Fatalf("%v: %v, want exit code %d\nstdout: %s\nstderr: %s", p.cmd.Args, p.cmd.ProcessState, code, &p.stdout, &p.stderr)
	}
	return p
}

// endsBy sends the signal to the process, and checks that the process ends with the exit
// code for that signal.
func (p *process) endsBy(sig syscall.Signal) {
	p.t.Helper()
	p.signal(sig)
	p.ends(128 + int(sig))
}

// said fails the test unless the process has written each text to stderr.
func (p *process) said(texts ...string) {
	p.t.Helper()
	lab.WantParts(p.t, fmt.Sprint(p.cmd.Args, " said"), p.stderr.String(), texts...)
}

// printed fails the test unless the process has written each text to stdout.
func (p *process) printed(texts ...string) {
	p.t.Helper()
	lab.WantParts(p.t, fmt.Sprint(p.cmd.Args, " printed"), p.stdout.String(), texts...)
}

// fileNumber waits until a CMD has written a number to the file at path, and returns the number.
func fileNumber(t *testing.T, path string) int {
	t.Helper()
	eventually(t, "a number in "+path, func() bool {
		b, err := os.ReadFile(path)
		return err == nil && strings.HasSuffix(string(b), "\n")
	})
	return lab.Must(strconv.Atoi(strings.TrimSpace(string(lab.Must(os.ReadFile(path))(t)))))(t)
}

// atWork starts leasehold with the script in the constant "works" as CMD. It returns the process
// ids of CMD and of CMD's child.
func atWork(t *testing.T, dir string, env []string, args ...string) (p *process, cmd, child int) {
	t.Helper()
	p = start(t, dir, env, append(args, "--", "sh", "-c", works)...)
	return p, fileNumber(t, filepath.Join(dir, "pid")), fileNumber(t, filepath.Join(dir, "pid2"))
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

// dead fails the test with the given message if the process still runs.
func dead(t *testing.T, pid int, message string) {
	t.Helper()
	lab.Want(t, message, !isDead(pid), false)
}

func tableEnv(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	return dir, lab.Must(withTable(dir))(t)
}

// owned returns a copy of env in which LEASEHOLD_OWNER is owner.
func owned(env []string, owner string) []string {
	return append(slices.Clip(env), "LEASEHOLD_OWNER="+owner)
}

// works is a shell script for CMD. The script starts sleep in the same process group, writes both
// process ids to files, and runs until a signal ends it.
const works = `echo $$ >pid; sleep 300 & echo $! >pid2; wait`

func TestSignalsAreForwardedToCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "ALRM": syscall.SIGALRM,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			p := start(t, dir, env, "run", "k", "--", "sh", "-c",
				fmt.Sprintf(`trap 'echo got %s; exit 40' %s; echo 1 >ready; while :; do sleep 0.01; done`, name, name))
			fileNumber(t, filepath.Join(dir, "ready"))
			p.signal(sig)
			p.ends(40)
			lab.Want(t, "CMD said", p.stdout.String(), "got "+name+"\n")
		})
	}
}

func TestSignalReachesChildProcessOfCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	p := start(t, dir, env, "run", "k", "--", "sh", "-c", `
		trap 'wait; exit 40' USR1
		sh -c 'trap "echo 1 >got; exit" USR1; echo 1 >ready; while :; do sleep 0.01; done' &
		wait`)
	fileNumber(t, filepath.Join(dir, "ready"))
	p.signal(syscall.SIGUSR1)
	p.ends(40)
	fileNumber(t, filepath.Join(dir, "got"))
}

func TestRunDoesNotWaitForLockedMetricsFileOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	f := lab.Must(os.Create(filepath.Join(dir, "m.prom")))(t)
	defer f.Close()
	lab.OK(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	start(t, dir, env, "acquire", "k").ends(0)
	p := start(t, dir, env, "run", "-n", "--metrics", "m.prom", "k", "--", "true")
	p.ends(75)
	p.said("the metrics could not be written to m.prom: ")
}

func TestSuggestedCommandIsQuotedForShellOnAnyBackend(t *testing.T) {
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
		startProgram(t, dir, env, "bash", "-c", typed).ends(0)
	}
}

func TestSIGINTInterruptsWaitForDataFromFIFOOnAnyBackend(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "k", "--data", "@data", "--", "true"}, {"acquire", "k", "--data", "@data"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			fifo := filepath.Join(dir, "data")
			lab.OK(t, syscall.Mkfifo(fifo, 0o600))
			p := start(t, dir, env, args...)
			writer := lab.Must(os.OpenFile(fifo, os.O_WRONLY, 0))(t) // returns once leasehold has opened the FIFO for reading
			defer writer.Close()
			p.signal(syscall.SIGINT)
			p.wait()
			lab.Want(t, "signal that ended leasehold", p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), syscall.SIGINT)
		})
	}
}

func TestSignalBeforeStartOfCMDReachesCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	p := start(t, dir, env, "run", "k", "--", "sleep", "300")
	eventually(t, "the watchdog runs", func() bool { return len(childrenOf(t, p.cmd.Process.Pid)) > 0 })
	p.endsBy(syscall.SIGUSR1) // leasehold must hold back SIGUSR1 until CMD runs: the gate process, which later becomes CMD, ignores SIGUSR1
}

// The test starts one program with and without leasehold, and compares what the program inherits.
func TestLeaseholdDoesNotChangeWhatCMDInheritsOnAnyBackend(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the test reads the state of a process in /proc")
	}
	dir, env := tableEnv(t)
	f := lab.Must(os.Create(filepath.Join(dir, "in")))(t)
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
	lab.Want(t, "under leasehold", tell("leasehold", "run", "k", "--"), want)
}

// The test suspends leasehold (SIGSTOP). It uses a server, because a suspended process may keep a
// local store's file locked. The lease is so long that the watchdog has a second to kill CMD.
func TestCMDOfPausedRunIsKilledBeforeNextHolderStartsCMD(t *testing.T) {
	t.Parallel()
	dir, env := t.TempDir(), newFaulty(t, table.Spec{}, healthy).env
	p := start(t, dir, env, "run", "-l", "10s", "k", "--", "sh", "-c", "trap '' TERM; "+works)
	cmd, child := fileNumber(t, filepath.Join(dir, "pid")), fileNumber(t, filepath.Join(dir, "pid2"))
	p.signal(syscall.SIGSTOP)
	next := start(t, dir, env, "run", "k", "--", "sh", "-c",
		fmt.Sprintf("for p in %d %d; do test -e /proc/$p/stat && cat /proc/$p/stat; done; true", cmd, child))
	next.ends(0)
	for _, line := range strings.Split(strings.TrimSpace(next.stdout.String()), "\n") {
		if line != "" && !strings.Contains(line, ") Z ") {
			t.Errorf("a process still ran when the next CMD ran: %s", line)
		}
	}
	p.signal(syscall.SIGCONT)
	p.ends(123)
	p.said("leasehold: lost k (token ", "; CMD was stopped")
}

// hanging starts a server, and returns a flag. While the flag is true, the server answers
// no request.
func hanging(t *testing.T) (f *faulty, hangs *atomic.Bool) {
	t.Helper()
	hangs = &atomic.Bool{}
	return newFaulty(t, table.Spec{}, faultWhile(hangs, unanswered)), hangs
}

// events parses the JSON objects that leasehold run --json has written to stderr. The
// result maps each kind of event to the last event of that kind. The kind of an error
// message is "error" followed by the error code.
func events(t *testing.T, stderr string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for line := range strings.Lines(stderr) {
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

func TestRunStopsCMDBeforeLeaseExpiresIfServerHangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, hangs := hanging(t)
	p := start(t, dir, server.env, "run", "--json", "-l", "12s", "-g", "5s", "k", "--",
		"sh", "-c", `exec 2>&-; trap 'date +%s%N >told; exit 5' TERM; date +%s%N >began; while :; do sleep 0.01; done`)
	fileNumber(t, filepath.Join(dir, "began"))
	hung := time.Now()
	hangs.Store(true)
	p.ends(123)
	told := time.Unix(0, int64(fileNumber(t, filepath.Join(dir, "told"))))
	seen := events(t, p.stderr.String())
	for _, kind := range []string{"granted", "renew_error", "stopping", "exited", "error lost"} {
		if seen[kind] == nil {
			t.Fatalf("no event %q among %v", kind, seen)
		}
	}
	// The lock was requested at the time "sought", and the server stopped answering at the time
	// "hung". The last answered request was sent between these two times. Trust ends 10.8 s (nine
	// tenths of -l) after that request, and CMD gets the stop signal 5 s (-g) before trust ends.
	granted, err := time.Parse(time.RFC3339, fmt.Sprint(seen["granted"]["time"]))
	took, ok := seen["granted"]["tookMs"].(float64)
	if err != nil || !ok {
		t.Fatalf("granted: %v", seen["granted"])
	}
	sought := granted.Add(-time.Duration(took+1) * time.Millisecond)
	if told.Before(sought.Add(5800*time.Millisecond)) || told.After(hung.Add(10800*time.Millisecond)) {
		t.Errorf("CMD got the signal %v after the lock was requested and %v after the server hung", told.Sub(sought), told.Sub(hung))
	}
}

// With -v, each renewal writes a line to stderr. The reader of stderr, such as a pager, does not
// read while CMD runs.
func TestLockIsRenewedWhileStandardErrorBlocksOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	reader, writer, err := os.Pipe()
	lab.OK(t, err)
	defer reader.Close()
	p := processOf(t, dir, env, "leasehold", "run", "-v", "-l", "2s", "-g", "0.1s", "k", "--", "sh", "-c",
		"head -c 200000 /dev/zero >&2 & sleep 4; kill $!; echo 1 >done; exit 3")
	p.cmd.Stderr = writer
	p.start()
	lab.OK(t, writer.Close())
	fileNumber(t, filepath.Join(dir, "done"))
	said := lab.Must(io.ReadAll(reader))(t)
	p.ends(3)
	if n := bytes.Count(said, []byte("UpdateItem k: ok")); n < 5 {
		t.Errorf("%d requests in stderr; the grant, the release and at least 3 renewals were answered", n)
	}
}

func TestCMDThatIgnoresStopSignalIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, hangs := hanging(t)
	p := start(t, dir, server.env, "run", "-l", "12s", "-g", "5s", "-s", "USR1", "k", "--",
		"sh", "-c", `trap 'echo told' USR1; echo $$ >pid; while :; do sleep 0.01; done`)
	cmd := fileNumber(t, filepath.Join(dir, "pid"))
	hangs.Store(true)
	p.ends(123)
	dead(t, cmd, "CMD still runs")
	lab.Want(t, "CMD said", p.stdout.String(), "told\n")
}

// watchdogOf returns the process id of the watchdog. The watchdog and CMD are the only
// children of the supervisor, which is the process of leasehold run.
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

func TestCMDDiesWithLeaseholdIfWatchdogIsPausedOnAnyBackend(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux sends a signal at the parent's death")
	}
	dir, env := tableEnv(t)
	p, cmd, child := atWork(t, dir, env, "run", "k")
	watchdog := watchdogOf(t, p.cmd.Process.Pid, cmd)
	// Suspend leasehold (SIGSTOP) first, and wait until all its threads have stopped. A
	// thread that still ran would start a new watchdog in place of the suspended watchdog.
	p.signal(syscall.SIGSTOP)
	eventually(t, "leasehold is stopped", func() bool { return isStopped(p.cmd.Process.Pid) })
	lab.OK(t, syscall.Kill(watchdog, syscall.SIGSTOP))
	eventually(t, "its watchdog is stopped", func() bool { return isStopped(watchdog) })
	p.signal(syscall.SIGKILL)
	eventually(t, "CMD is dead", func() bool { return isDead(cmd) })
	lab.OK(t, syscall.Kill(watchdog, syscall.SIGCONT))
	eventually(t, "the process that CMD has started is dead", func() bool { return isDead(child) })
}

func TestLossOfLockStopsCMDEvenIfWatchdogDied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, hangs := hanging(t)
	p, cmd, _ := atWork(t, dir, server.env, "run", "-l", "3s", "k")
	lab.OK(t, syscall.Kill(watchdogOf(t, p.cmd.Process.Pid, cmd), syscall.SIGKILL))
	hangs.Store(true)
	p.ends(123)
	p.said("the watchdog process has died")
	dead(t, cmd, "CMD still runs")
}

// If the watchdog is killed or suspended (SIGSTOP), leasehold starts a new watchdog. If leasehold
// is then killed too, the new watchdog kills CMD and the children of CMD.
func TestDeadOrPausedWatchdogIsReplacedOnAnyBackend(t *testing.T) {
	t.Parallel()
	signals := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP}
	lab.ParallelVariants(t, signals, func(t *testing.T, fault syscall.Signal) {
		dir, env := tableEnv(t)
		p, cmd, child := atWork(t, dir, env, "run", "k")
		t.Cleanup(func() { _ = syscall.Kill(-cmd, syscall.SIGKILL) }) // if the test fails, this kills processes of CMD's group that still run
		lab.OK(t, syscall.Kill(watchdogOf(t, p.cmd.Process.Pid, cmd), fault))
		eventually(t, "another watchdog", func() bool {
			return strings.Contains(p.stderr.String(), "the watchdog process has died, or was stopped: started another")
		})
		p.signal(syscall.SIGKILL)
		eventually(t, "CMD is dead", func() bool { return isDead(cmd) })
		eventually(t, "the process that CMD has started is dead", func() bool { return isDead(child) })
	})
}

// The test kills each watchdog process in turn, as the kernel may do when memory runs out.
func TestLossOfLockStopsCMDEvenIfTenWatchdogsDied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, hangs := hanging(t)
	p, cmd, child := atWork(t, dir, server.env, "run", "-l", "9s", "k")
	deaths := 0
	eventually(t, "the death of the last watchdog", func() bool {
		said := p.stderr.String()
		if strings.Count(said, "started another") == deaths && !strings.Contains(said, ": it has died 10 times") {
			deaths++
			lab.OK(t, syscall.Kill(watchdogOf(t, p.cmd.Process.Pid, cmd), syscall.SIGKILL))
		}
		return strings.Contains(said, "CMD is stopped in time only while leasehold itself runs: it has died 10 times")
	})
	hangs.Store(true)
	p.ends(123)
	dead(t, child, "the process that CMD has started still runs")
}

func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	threads := lab.Must(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)))(t)
	var children []int
	for _, path := range threads {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(b)) {
			children = append(children, lab.Must(strconv.Atoi(field))(t))
		}
	}
	return children
}

func TestProcessesNeverHoldKeyConcurrentlyOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	leasehold := lab.Must(installed())(t)
	processes, each := 16, 13
	if testing.Short() {
		each = 4
	}
	// The critical section first creates a file, and removes the file at the end. The
	// critical section fails if the file already exists, because then another process is in
	// the critical section.
	const section = `set -C; : >inside && rm inside && echo x >>sections`
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			for range each {
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
	b := lab.Must(os.ReadFile(filepath.Join(dir, "sections")))(t)
	lab.Want(t, "sections", strings.Count(string(b), "x"), processes*each)
}
