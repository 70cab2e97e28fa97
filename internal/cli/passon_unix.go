//go:build unix

package cli

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// passOn passes a signal that this process got on to CMD's group.
func (c *child) passOn(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	switch number {
	case unix.SIGPIPE: // caused by this process's own stderr
	case unix.SIGTSTP:
		c.signal(unix.SIGTSTP)
		stopSelf()
	default:
		c.signal(number)
	}
}
