//go:build unix

package process

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal. It belongs to one process group at a time: to the
// supervisor's rather than CMD's, so that the supervisor receives Ctrl-C. If CMD reads the
// terminal, the kernel stops it (termios(3), SIGTTIN). Only then is the terminal given to
// CMD's group.
type terminal struct {
	f     *os.File
	given bool
}

// foreground returns the terminal's process group, and 0 if there is no terminal.
func (t *terminal) foreground() int {
	if t.f == nil {
		f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return 0
		}
		t.f = f
	}
	group, err := unix.IoctlGetInt(int(t.f.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// give gives the terminal to a group if it belongs to this process's group.
func (t *terminal) give(group int) bool {
	if t.foreground() != unix.Getpgrp() {
		return false
	}
	t.given = t.set(group)
	return t.given
}

// takeBack gives the terminal back to this process's group.
func (t *terminal) takeBack() {
	if t.given {
		t.set(unix.Getpgrp())
		t.given = false
	}
}

// set sets the terminal's group. The kernel stops a background process that tries this,
// unless it ignores SIGTTOU (tcsetpgrp(3)).
func (t *terminal) set(group int) bool {
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	return unix.IoctlSetPointerInt(int(t.f.Fd()), unix.TIOCSPGRP, group) == nil
}

// WasStopped is called when sig has stopped CMD.
func (c *Child) WasStopped(sig syscall.Signal) {
	switch sig {
	case unix.SIGTTIN, unix.SIGTTOU:
		if c.terminal.give(c.group()) {
			c.Signal(unix.SIGCONT)
		}
	case unix.SIGTSTP:
		if !c.terminal.given {
			return
		}
		// Ctrl-Z stopped only CMD. The shell expects the whole job to stop and
		// to continue together.
		c.terminal.takeBack()
		if isJob() {
			stopUntilContinued(0)
		}
		c.terminal.give(c.group())
		c.Signal(unix.SIGCONT)
	}
}
