//go:build unix

package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

// ownSession puts a process into its own session, so that it receives no signals of the
// terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// waitUnlessStopped waits until a child has ended, and kills it if it is stopped.
func waitUnlessStopped(p *os.Process) {
	defer func() { _ = p.Release() }()
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(p.Pid, &status, unix.WUNTRACED, nil)
		switch {
		case err == unix.EINTR:
		case err == nil && status.Stopped():
			_ = p.Kill()
		default:
			return
		}
	}
}

// exitCode returns the exit code of a process in a shell's form: 128+N for signal N.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return failure.CodeSignal + int(status.Signal())
	}
	return status.ExitStatus()
}
