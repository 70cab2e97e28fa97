package cli_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

// In a container that docker run -t starts, leasehold is process 1 and has a terminal, but
// no shell could resume a suspended process. If Ctrl-Z suspended CMD, CMD would never
// continue, and KEY would stay held.
func TestCtrlZIsIgnoredByFirstProcessOfContainerOnAnyTable(t *testing.T) {
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
