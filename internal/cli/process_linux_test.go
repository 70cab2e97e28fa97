package cli_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// The test kills the shell that started leasehold, as a CI system does when a step is
// cancelled. Without --die-with-parent, CMD would continue.
func TestDieWithParentFlagStopsCMDOnAnyBackend(t *testing.T) {
	t.Parallel()
	type variant struct {
		command, cmd string
		exitCode     string
	}
	lab.ParallelVariants(t, map[string]variant{
		"run":                      {"run", works, `"exitCode":143}`},
		"elect":                    {"elect", works, `"exitCode":143}`},
		"CMD ignores the signal":   {"run -g 0.2s", `trap "" TERM; ` + works, `"exitCode":137}`},
		"CMD handles the signal":   {"run", `trap "exit 7" TERM; ` + works, `"exitCode":7}`},
		"CMD has left processes":   {"run", `sleep 300 & echo $! >pid2; echo $$ >pid`, `"exitCode":0}`},
		"CMD exits with 0, --once": {"run --once v1", `trap "exit 0" TERM; ` + works, `"exitCode":0}`},
	}, func(t *testing.T, c variant) {
		dir, env := tableEnv(t)
		shell := startSaying(t, dir, append(env, "WORKS="+c.cmd), "sh", "-c",
			`leasehold `+c.command+` --die-with-parent --events events k -- sh -c "$WORKS" & wait`)
		cmd, child := fileNumber(t, filepath.Join(dir, "pid")), leftBehind(t, filepath.Join(dir, "pid2"))
		shell.signal(syscall.SIGTERM)
		_ = shell.wait()
		says(t, dir, "leasehold: the process that started leasehold has ended: stopping CMD\n")
		eventually(t, "CMD is dead", func() bool { return isDead(cmd) })
		eventually(t, "the process that CMD has started is dead", func() bool { return isDead(child) })
		eventually(t, "leasehold has ended", func() bool {
			b, err := os.ReadFile(filepath.Join(dir, "events"))
			return err == nil && strings.Contains(string(b), `"event":"ended"`) && strings.Contains(string(b), c.exitCode)
		})
		start(t, dir, env, "run", "-n", "--once", "v1", "k", "--", "sh", "-c", "exit 9").ends(9)
	})
}

func TestDieWithParentFlagInterruptsWaitOnAnyBackend(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"run", "elect"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			start(t, dir, env, "acquire", "k", "-l", "10m").ends(0)
			shell := startSaying(t, dir, env, "sh", "-c", `leasehold `+command+` --die-with-parent --events events k -- true & wait`)
			says(t, dir, "waiting for k")
			shell.signal(syscall.SIGKILL)
			_ = shell.wait()
			eventually(t, "leasehold has ended", func() bool {
				b, err := os.ReadFile(filepath.Join(dir, "events"))
				return err == nil && strings.Contains(string(b), `"exitCode":143`)
			})
		})
	}
}

func TestRunOutlivesParentByDefaultOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	shell := processOf(t, dir, append(env, "WORKS="+works), "sh", "-c",
		`leasehold run --die-with-parent j -- sh -c "sleep 300 & echo \$! >other; wait" & leasehold run k -- sh -c "$WORKS" & wait`)
	shell.start()
	with := leftBehind(t, filepath.Join(dir, "other"))
	cmd, child := leftBehind(t, filepath.Join(dir, "pid")), leftBehind(t, filepath.Join(dir, "pid2"))
	shell.signal(syscall.SIGTERM)
	_ = shell.wait()
	eventually(t, "CMD with the flag is dead", func() bool { return isDead(with) })
	lab.Want(t, "CMD without the flag is dead", isDead(cmd) || isDead(child), false)
	start(t, dir, env, "run", "-n", "k", "--", "true").ends(75)
	for _, pid := range []int{cmd, child} {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	start(t, dir, env, "run", "-w", "10s", "k", "--", "true").ends(0) // waits until the first run has released k: after the test, the store is removed
}

// Any user of the machine can read the command lines of all processes, so command lines
// must not contain secrets.
func TestProcessCommandLinesContainNoSecrets(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	const mine = "nobody-else-may-know-0123456789"
	run := start(t, dir, append(env, "AWS_SECRET_ACCESS_KEY="+mine), "run", "k", "--", "sh", "-c", works)
	cmd := fileNumber(t, filepath.Join(dir, "pid"))
	dog := watchdogOf(t, run.cmd.Process.Pid, cmd)

	page := start(t, dir, env, "ui")
	eventually(t, "the page is served", func() bool { return strings.Contains(page.stdout.String(), "#token=") })
	_, token, _ := strings.Cut(strings.TrimSpace(page.stdout.String()), "#token=")

	start(t, dir, bare(dir), "local", "--addr", "127.0.0.1:0", "--", "sh", "-c", `echo "$AWS_SECRET_ACCESS_KEY" >made; exec sleep 300`)
	eventually(t, "the engine's key", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "made"))
		return err == nil && len(b) > 20
	})
	made := lab.Must(os.ReadFile(filepath.Join(dir, "made")))(t)
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) < 4 || len(token) < 32 {
		t.Fatal(lines, len(token), err)
	}
	for _, path := range lines {
		line, _ := os.ReadFile(path) // the process may have ended
		for what, secret := range map[string]string{"AWS's key": mine, "the page's token": token, "the engine's key": strings.TrimSpace(string(made))} {
			lab.WantNoPart(t, "a command line with "+what, line, secret)
		}
	}
	environment := lab.Must(os.ReadFile("/proc/" + strconv.Itoa(dog) + "/environ"))(t)
	lab.Want(t, "bytes in the watchdog's environment", len(environment), 0)
}

// In a container started with docker run -t, leasehold is process 1 and has a terminal, but no
// shell can resume a suspended process. If Ctrl-Z suspended CMD, KEY would stay held.
func TestLeaseholdAsPID1IgnoresCtrlZOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	p := processOf(t, dir, env, "leasehold", "run", "k", "--", "sh", "-c",
		`trap 'exit 40' WINCH; echo 1 >ready; while :; do sleep 0.01; done`)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	p.cmd.Stderr = &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Skipf("only root may start the first process of a container: %v", err)
	}
	t.Cleanup(p.kill)
	fileNumber(t, filepath.Join(dir, "ready"))
	p.signal(syscall.SIGTSTP)
	p.signal(syscall.SIGWINCH) // CMD handles SIGWINCH only if the previous signal has not suspended CMD
	p.ends(40)
}
