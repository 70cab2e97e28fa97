//go:build linux

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// leaves is a shell script for CMD. The script starts a process in a new session (setsid),
// and exits with code 3 while that process still runs. The process runs until a line is
// written to the FIFO "go".
const leaves = `mkfifo go && setsid sh -c 'echo $$ >left; read line <go' & while ! test -s left; do sleep 0.01; done; echo $$ >pid; exit 3`

// startSaying starts a program and sends its stderr to the file "said" in dir. It uses no pipe,
// because a process that outlives the program would keep the pipe open. The test would then wait
// for that process as well.
func startSaying(t *testing.T, dir string, env []string, program string, args ...string) *process {
	t.Helper()
	said := lab.Must(os.Create(filepath.Join(dir, "said")))(t)
	defer said.Close()
	p := processOf(t, dir, env, program, args...)
	p.cmd.Stderr = said
	p.start()
	return p
}

// startLeaving starts leasehold run on the key "k" in a new table. CMD is the script in the
// constant "leaves". startLeaving returns once CMD has ended. The result "left" is the id of the
// process that CMD has left running.
func startLeaving(t *testing.T, flags ...string) (dir string, env []string, p *process, left int) {
	t.Helper()
	dir, env = tableEnv(t)
	p = startSaying(t, dir, env, "leasehold", append(append([]string{"run"}, flags...), "k", "--", "sh", "-c", leaves)...)
	left = leftBehind(t, filepath.Join(dir, "left"))
	cmd := fileNumber(t, filepath.Join(dir, "pid"))
	eventually(t, "CMD has ended", func() bool { return isDead(cmd) })
	return dir, env, p, left
}

// leftBehind returns the process id in the file at path. If that process still runs at the
// end of the test, a cleanup function kills the process.
func leftBehind(t *testing.T, path string) int {
	t.Helper()
	pid := fileNumber(t, path)
	t.Cleanup(func() {
		if !isDead(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return pid
}

// The helper "says" waits until the given text is in the stderr of the program that startSaying has
// started in dir.
func says(t *testing.T, dir, text string) {
	t.Helper()
	eventually(t, "stderr contains "+text, func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "said"))
		return err == nil && strings.Contains(string(b), text)
	})
}

func TestKeyIsHeldUntilLastProcessOfCMDEndsOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env, p, left := startLeaving(t)
	start(t, dir, env, "run", "-n", "k", "--", "true").ends(75)
	says(t, dir, fmt.Sprintf("leasehold: CMD has ended, but k stays held: 1 process that it started still runs: sh (pid %d) (see --background)\n", left))
	lab.OK(t, os.WriteFile(filepath.Join(dir, "go"), []byte("\n"), 0))
	p.ends(3)
	start(t, dir, env, "run", "-n", "k", "--", "true").ends(0)
}

func TestSIGTERMStopsBackgroundProcessOfCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, _, p, left := startLeaving(t, "--json")
	says(t, dir, fmt.Sprintf(`"processes":[{"pid":%d,"name":"sh"}]`, left))
	p.signal(syscall.SIGTERM)
	p.ends(3)
	dead(t, left, "the process still runs")
}

// Only leasehold receives SIGTERM here, as with docker stop. It forwards SIGTERM only to CMD's
// process group. CMD has started another process in a session of its own (setsid), so leasehold
// must stop that process as well.
func TestSIGTERMStopsDetachedChildOfCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	p := start(t, dir, env, "run", "k", "--", "sh", "-c", "setsid sleep 300 & echo $! >left; wait")
	left := leftBehind(t, filepath.Join(dir, "left"))
	p.endsBy(syscall.SIGTERM)
	dead(t, left, "the process still runs")
}

func TestRunCanStopBackgroundProcessesOfCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env, p, left := startLeaving(t, "--background", "stop")
	p.ends(3)
	says(t, dir, fmt.Sprintf("leasehold: CMD has ended: stopping what it left running: sh (pid %d)\n", left))
	dead(t, left, "the process still runs")
	// This CMD leaves behind a process that ignores SIGTERM. leasehold kills that process once the
	// grace period (-g) has passed.
	const stubborn = `setsid sh -c 'trap "" TERM; echo $$ >stubborn; while :; do sleep 0.01; done' & while ! test -s stubborn; do sleep 0.01; done`
	start(t, dir, env, "run", "-n", "--background", "stop", "-g", "0.2s", "k", "--", "sh", "-c", stubborn).ends(0)
	dead(t, leftBehind(t, filepath.Join(dir, "stubborn")), "the process that ignores SIGTERM still runs")
}

func TestRunCanLeaveChildrenOfCMDAliveOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, _, p, left := startLeaving(t, "--background", "keep")
	p.ends(3)
	says(t, dir, fmt.Sprintf("leasehold: CMD has ended: releasing k, though 1 process that it started still runs: sh (pid %d)\n", left))
	lab.Want(t, "the process that CMD left running was stopped", isDead(left), false)
	// leasehold has released the key, but LEASEHOLD_HELD still contains it in the environment of
	// the process that CMD left running. A command with this environment can nevertheless acquire
	// the key.
	b := lab.Must(os.ReadFile(fmt.Sprintf("/proc/%d/environ", left)))(t)
	start(t, dir, strings.Split(strings.TrimRight(string(b), "\x00"), "\x00"), "run", "-n", "k", "--", "true").ends(0)
}

// With --background keep, leasehold stops CMD, but not the process that CMD has detached. So
// leasehold must not wait for that process.
func TestStoppedRunDoesNotWaitForKeptProcessOnAnyBackend(t *testing.T) {
	t.Parallel()
	const works = `trap 'sleep 0.1; exit 7' TERM; setsid sh -c 'echo $$ >left; exec sleep 300' & ` +
		`until grep -qs sleep "/proc/$(cat left 2>&1)/comm"; do sleep 0.01; done; echo $LEASEHOLD_TOKEN >token; wait`
	begin := func(t *testing.T, command string) (dir string, env []string, shell *process, left, token int) {
		dir, env = tableEnv(t)
		shell = startSaying(t, dir, append(env, "WORKS="+works), "sh", "-c",
			`leasehold `+command+` --background keep --events events k -- sh -c "$WORKS" & wait`)
		left, token = leftBehind(t, filepath.Join(dir, "left")), fileNumber(t, filepath.Join(dir, "token"))
		return dir, env, shell, left, token
	}
	ends := func(t *testing.T, dir string, left int, code string) {
		t.Helper()
		eventually(t, "leasehold has ended", func() bool {
			b, err := os.ReadFile(filepath.Join(dir, "events"))
			return err == nil && strings.Contains(string(b), `"event":"ended"`) && strings.Contains(string(b), code)
		})
		says(t, dir, fmt.Sprintf("leasehold: CMD has ended: releasing k, though 1 process that it started still runs: sleep (pid %d)\n", left))
		lab.Want(t, "the process that CMD left running was stopped", isDead(left), false)
	}
	t.Run("lock is lost", func(t *testing.T) {
		t.Parallel()
		dir, env, _, left, token := begin(t, "run -l 6s")
		start(t, dir, env, "break", "k", "--yes", "--token", strconv.Itoa(token)).ends(0)
		ends(t, dir, left, `"exitCode":123`)
	})
	t.Run("parent has ended", func(t *testing.T) {
		t.Parallel()
		dir, env, shell, left, _ := begin(t, "run --die-with-parent")
		shell.signal(syscall.SIGKILL)
		_ = shell.wait()
		ends(t, dir, left, `"exitCode":7`)
		start(t, dir, env, "run", "-n", "k", "--", "true").ends(0)
	})
	t.Run("signal arrives when CMD has ended", func(t *testing.T) {
		t.Parallel()
		for range 5 { // because leasehold may notice the end of CMD first
			dir, env := tableEnv(t)
			p := startSaying(t, dir, env, "leasehold", "run", "--background", "keep", "--events", "events", "k", "--", "sh", "-c", "echo $$ >pid; "+works)
			cmd, left := fileNumber(t, filepath.Join(dir, "pid")), leftBehind(t, filepath.Join(dir, "left"))
			fileNumber(t, filepath.Join(dir, "token"))
			p.signal(syscall.SIGSTOP)
			lab.OK(t, syscall.Kill(cmd, syscall.SIGKILL))
			p.signal(syscall.SIGTERM)
			p.signal(syscall.SIGCONT)
			ends(t, dir, left, `"exitCode":137`)
			p.ends(137)
		}
	})
}

func TestLossOfLockKillsDetachedChildOfCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	const works = `setsid -w sh -c 'trap "" TERM; echo $$ >left; while :; do sleep 0.01; done' & echo $LEASEHOLD_TOKEN >token; wait`
	p := start(t, dir, env, "run", "-l", "6s", "-g", "0.1s", "k", "--", "sh", "-c", works)
	left, token := leftBehind(t, filepath.Join(dir, "left")), fileNumber(t, filepath.Join(dir, "token"))
	start(t, dir, env, "break", "k", "--yes", "--token", strconv.Itoa(token)).ends(0)
	p.ends(123)
	dead(t, left, "the process still runs")
}

func TestDeathOfLeaseholdKillsProcessLeftByCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	_, _, p, left := startLeaving(t)
	p.signal(syscall.SIGKILL)
	eventually(t, "the process is dead", func() bool { return isDead(left) })
}

// withoutFirstThread is the name of an environment variable. If that variable is set, this
// test program ends its main thread while its other threads continue. The program then
// writes its process id to the file whose path is the value of the variable.
const withoutFirstThread = "TEST_WITHOUT_FIRST_THREAD"

func init() { // Go runs init functions on the main thread
	path := os.Getenv(withoutFirstThread)
	if path == "" {
		return
	}
	pid := os.Getpid()
	go func() {
		for !isDead(pid) { // until /proc shows that the main thread has ended
			time.Sleep(time.Millisecond)
		}
		_ = os.WriteFile(path, fmt.Appendln(nil, pid), 0o600)
		time.Sleep(2 * patience)
		os.Exit(0)
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

// hasThreads reports whether a process has threads besides its first thread.
func hasThreads(pid int) bool {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return err == nil && len(threads) > 1
}

func TestProcessWithoutMainThreadCountsAsAliveOnAnyBackend(t *testing.T) {
	t.Parallel()
	const leaves = "setsid env " + withoutFirstThread + "=left leasehold & while ! test -s left; do sleep 0.01; done; echo $LEASEHOLD_TOKEN >token"
	begin := func(t *testing.T, after string) (dir string, env []string, p *process, left int) {
		dir, env = tableEnv(t)
		p = startSaying(t, dir, env, "leasehold", "run", "-l", "6s", "-g", "0.1s", "k", "--", "sh", "-c", leaves+after)
		fileNumber(t, filepath.Join(dir, "token"))
		left = fileNumber(t, filepath.Join(dir, "left"))
		t.Cleanup(func() {
			if hasThreads(left) {
				_ = syscall.Kill(left, syscall.SIGKILL)
			}
		})
		return dir, env, p, left
	}
	t.Run("lock is held until process ends", func(t *testing.T) {
		t.Parallel()
		dir, _, p, left := begin(t, "; exit 3")
		says(t, dir, fmt.Sprintf("CMD has ended, but k stays held: 1 process that it started still runs: leasehold (pid %d)", left))
		_ = syscall.Kill(left, syscall.SIGKILL)
		p.ends(3)
	})
	t.Run("process is killed when lock is lost", func(t *testing.T) {
		t.Parallel()
		dir, env, p, left := begin(t, "; wait")
		start(t, dir, env, "break", "k", "--yes", "--token", strconv.Itoa(fileNumber(t, filepath.Join(dir, "token")))).ends(0)
		p.ends(123)
		lab.Want(t, "the process still runs", hasThreads(left), false)
	})
	t.Run("process is killed when leasehold is killed", func(t *testing.T) {
		t.Parallel()
		_, _, p, left := begin(t, "; wait")
		p.signal(syscall.SIGKILL)
		eventually(t, "the process is dead", func() bool { return !hasThreads(left) })
	})
}

// makesOrphans is a shell script for CMD. The script starts three processes and makes them
// orphans: the parent of each process exits first. The script exits with code 5 once
// leasehold has reaped the three orphans.
const makesOrphans = `for i in 1 2 3; do sh -c 'sh -c "exit 0" & echo $! >>orphans'; done
for pid in $(cat orphans); do while test -e /proc/$pid; do sleep 0.01; done; done; exit 5`

func TestRunReapsOrphansBeforeCMDExitsOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	start(t, dir, env, "run", "k", "--", "sh", "-c", makesOrphans).ends(5)
}

func TestLeaseholdAsPID1ReapsOrphansOnAnyBackend(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("cannot make a PID namespace: %v: %s", err, out)
	}
	leasehold := lab.Must(exec.LookPath("leasehold"))(t)
	dir, env := tableEnv(t)
	for _, mode := range []string{"wait", "keep"} {
		startProgram(t, dir, env, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
			leasehold, "run", "--background", mode, "k", "--", "sh", "-c", "rm -f orphans; test $PPID = 1 && "+makesOrphans).ends(5)
	}
}

// Many programs exit with 0 after SIGTERM. So after a stop signal, exit code 0 does not mean that
// CMD's work is done. This is true whether leasehold has forwarded the signal to CMD, or to a
// process that CMD has left running.
func TestJobStoppedBySIGTERMIsNotMarkedAsDoneOnAnyBackend(t *testing.T) {
	t.Parallel()
	type variant struct {
		cmd    string
		signal syscall.Signal
		done   bool
	}
	lab.ParallelVariants(t, map[string]variant{
		"TERM ends process left by CMD": {`setsid sleep 300 & echo $! >left`, syscall.SIGTERM, false},
		"USR1 ends process left by CMD": {`setsid sleep 300 & echo $! >left`, syscall.SIGUSR1, false},
		"CMD exits with 0 on TERM":      {`trap 'exit 0' TERM; echo $$ >left; while :; do sleep 0.01; done`, syscall.SIGTERM, false},
		"CMD exits with 0 on HUP":       {`trap 'exit 0' HUP; echo $$ >left; while :; do sleep 0.01; done`, syscall.SIGHUP, false},
		"CMD exits with 0 on USR1":      {`trap 'exit 0' USR1; echo $$ >left; while :; do sleep 0.01; done`, syscall.SIGUSR1, true},
	}, func(t *testing.T, c variant) {
		dir, env := tableEnv(t)
		p := startSaying(t, dir, env, "leasehold", "run", "--once", "v7", "k", "--", "sh", "-c", "echo $$ >pid; "+c.cmd)
		cmd, left := fileNumber(t, filepath.Join(dir, "pid")), leftBehind(t, filepath.Join(dir, "left"))
		if cmd != left {
			eventually(t, "CMD has ended", func() bool { return isDead(cmd) })
		}
		p.signal(c.signal)
		p.ends(0)
		dead(t, left, "the process still runs")
		said := string(lab.Must(os.ReadFile(filepath.Join(dir, "said")))(t))
		lab.Want(t, "stderr says that CMD is not done: "+said, strings.Contains(said, "so it does not count as done"), !c.done)
		start(t, dir, env, "get", "k", "--done", "v7").ends(map[bool]int{true: 0, false: 1}[c.done])
	})
}
