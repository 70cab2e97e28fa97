//go:build unix && !linux

package cli

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bootClock is the wall clock. No other clock is shared by all processes and
// advances while the machine is suspended. Its risk is that somebody sets it.
func bootClock() time.Duration { return time.Duration(time.Now().UnixNano()) }

// ownGroup puts CMD into its own process group. Only the watchdog notices that
// the supervisor has died.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func dieWithParent() {}

// await returns when CMD was stopped or has ended.
func (c *child) await() (stopped bool, sig syscall.Signal) {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(c.cmd.Process.Pid, &status, unix.WUNTRACED, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return false, 0
		case status.Stopped():
			return true, status.StopSignal()
		}
		ended := syscall.WaitStatus(status)
		c.status = &ended
		return false, 0
	}
}

func thisProgram() (string, error) { return os.Executable() }

// groupRuns reports whether there is a process of a group.
func groupRuns(group int) bool {
	err := unix.Kill(-group, 0)
	return err == nil || err == unix.EPERM
}
