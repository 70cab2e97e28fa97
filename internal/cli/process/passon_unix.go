//go:build unix

package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// PassOn passes a signal that this process got on to CMD's group.
func (c *Child) PassOn(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	switch number {
	case unix.SIGPIPE: // caused by this process's own stderr
	case unix.SIGTSTP:
		c.Signal(unix.SIGTSTP)
		StopSelf()
	default:
		c.Signal(number)
	}
}
