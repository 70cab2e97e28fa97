//go:build unix

package process

import (
	"syscall"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

// ownSession keeps signals of the terminal from a process.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// exitCode returns the exit code of a process as a shell shows it: 128+N for
// signal N.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return failure.CodeSignal + int(status.Signal())
	}
	return status.ExitStatus()
}
