package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The test kills the shell that started leasehold, as a CI system does when a step is
// cancelled. Without --die-with-parent, CMD would continue.
func TestDieWithParentEndsCMDAndReleasesKeyOnAnyTable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command, cmd string
		sig          syscall.Signal
		exitCode     string
	}{
		"run, shell terminated":       {"run", works, syscall.SIGTERM, `"exitCode":143}`},
		"run, shell killed":           {"run", works, syscall.SIGKILL, `"exitCode":143}`},
		"elect":                       {"elect", works, syscall.SIGTERM, `"exitCode":143}`},
		"CMD ignores the signal":      {"run -g 0.2s", `trap "" TERM; ` + works, syscall.SIGTERM, `"exitCode":137}`},
		"CMD ends by itself":          {"run", `trap "exit 7" TERM; ` + works, syscall.SIGTERM, `"exitCode":7}`},
		"CMD has left processes":      {"run", `sleep 300 & echo $! >pid2; echo $$ >pid`, syscall.SIGTERM, `"exitCode":0}`},
		"CMD is done once, ends by 0": {"run --once v1", `trap "exit 0" TERM; ` + works, syscall.SIGTERM, `"exitCode":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			shell := startSaying(t, dir, append(env, "WORKS="+c.cmd), "sh", "-c",
				`leasehold `+c.command+` --die-with-parent --events events k -- sh -c "$WORKS" & wait`)
			cmd, child := fileNumber(t, filepath.Join(dir, "pid")), leftBehind(t, filepath.Join(dir, "pid2"))
			shell.signal(c.sig)
			_ = shell.wait()
			says(t, dir, "leasehold: the process that started leasehold has ended: stopping CMD\n")
			eventually(t, "CMD is dead", func() bool { return isDead(cmd) })
			eventually(t, "what CMD has started is dead", func() bool { return isDead(child) })
			eventually(t, "leasehold has ended", func() bool {
				b, err := os.ReadFile(filepath.Join(dir, "events"))
				return err == nil && strings.Contains(string(b), `"event":"ended"`) && strings.Contains(string(b), c.exitCode)
			})
			start(t, dir, env, "run", "-n", "--once", "v1", "k", "--", "sh", "-c", "exit 9").ends(9)
		})
	}
}

func TestDieWithParentEndsWaitOnAnyTable(t *testing.T) {
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

func TestParentExitIsIgnoredWithoutDieWithParentOnAnyTable(t *testing.T) {
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
	if isDead(cmd) || isDead(child) {
		t.Error("CMD without the flag is dead")
	}
	start(t, dir, env, "run", "-n", "k", "--", "true").ends(75)
	for _, pid := range []int{cmd, child} {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	start(t, dir, env, "run", "-w", "10s", "k", "--", "true").ends(0) // waits until the other processes have ended; the store is removed after the test
}
