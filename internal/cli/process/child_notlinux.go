//go:build unix && !linux

package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup puts CMD into its own process group. Here only the watchdog notices the death of
// the supervisor.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// await returns when CMD has been stopped or has ended.
func (c *Child) await() (stopped bool, sig syscall.Signal) {
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
