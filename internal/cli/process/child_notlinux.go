//go:build unix && !linux

package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup returns attributes that put CMD into its own process group. If leasehold
// dies, only the watchdog kills CMD. On Linux, the kernel kills CMD too.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// await blocks until CMD is suspended or has ended. It returns the signal that suspended
// CMD, or 0 if CMD has ended.
func (c *Child) await() syscall.Signal {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(c.cmd.Process.Pid, &status, unix.WUNTRACED, nil)
		switch stop := stoppedBy(status); {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0
		case stop != 0:
			return stop
		}
		ended := syscall.WaitStatus(status)
		c.status = &ended
		return 0
	}
}
