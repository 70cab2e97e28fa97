//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal, which belongs to one process group at
// a time. CMD's own group is not that group, so that Ctrl-C comes to the
// supervisor. A CMD that reads the terminal is stopped by the kernel
// (termios(3), SIGTTIN): then, and only then, it is given the terminal.
type terminal struct {
	f     *os.File
	given bool
}

// foreground returns the terminal's process group, 0 without a terminal.
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

// give gives the terminal to a group, if it is ours to give.
func (t *terminal) give(group int) bool {
	if t.foreground() != unix.Getpgrp() {
		return false
	}
	t.given = t.set(group)
	return t.given
}

// takeBack makes the terminal ours again.
func (t *terminal) takeBack() {
	if t.given {
		t.set(unix.Getpgrp())
		t.given = false
	}
}

// set sets the terminal's group. One in the background is stopped for trying
// unless it ignores that (tcsetpgrp(3)).
func (t *terminal) set(group int) bool {
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	return unix.IoctlSetPointerInt(int(t.f.Fd()), unix.TIOCSPGRP, group) == nil
}

// wasStopped does what is due when CMD was stopped by sig.
func (c *child) wasStopped(sig syscall.Signal) {
	switch sig {
	case unix.SIGTTIN, unix.SIGTTOU:
		if c.terminal.give(c.group()) {
			c.signal(unix.SIGCONT)
		}
	case unix.SIGTSTP:
		if !c.terminal.given {
			return
		}
		// Ctrl-Z reached CMD alone: the job as a whole stops, as its shell
		// expects, and goes on as a whole.
		c.terminal.takeBack()
		stopUntilContinued(0)
		c.terminal.give(c.group())
		c.signal(unix.SIGCONT)
	}
}
