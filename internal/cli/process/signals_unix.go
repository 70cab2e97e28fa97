//go:build unix

package process

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Caught are passed on to CMD, except PIPE. PIPE is caught so that a
// closed stderr does not kill the supervisor of CMD.
var Caught = []os.Signal{
	unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
	unix.SIGALRM, unix.SIGVTALRM, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT, unix.SIGPIPE,
}

// PassOn passes a signal that this process got on to CMD's group.
func (c *Child) PassOn(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	switch number {
	case unix.SIGPIPE: // caused by this process's own stderr
	case unix.SIGTSTP:
		if stopsJob(sig) {
			c.Signal(unix.SIGTSTP)
			stopSelf()
		}
	default:
		c.Signal(number)
	}
}

// endsWait reports whether a signal ends a wait.
func endsWait(sig syscall.Signal) bool {
	switch sig {
	case unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT, unix.SIGPIPE:
		return false
	}
	return true
}

// stopsJob reports whether a signal is that of Ctrl-Z, and stops this process.
func stopsJob(sig os.Signal) bool { return sig == unix.SIGTSTP && isJob() }

// isJob reports whether somebody could stop and continue this process. The first process of
// a container stops by no signal of its own. No shell looks after the group of a session's
// leader (ssh -t HOST leasehold run), and TSTP does nothing to others there (POSIX,
// "orphaned process group"). Either would wait for ever to be continued.
func isJob() bool {
	leader, err := unix.Getsid(0)
	return unix.Getpid() != 1 && (err != nil || leader != unix.Getpgrp())
}

// stopSelf stops this process until it gets ContinueSignal.
func stopSelf() { stopUntilContinued(unix.Getpid()) }

// stopUntilContinued stops this process, or its group, until it is continued.
// The kernel may let the calling thread run on for a while after kill(2), so it
// waits for ContinueSignal: only that says that the stop is over.
func stopUntilContinued(target int) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, ContinueSignal)
	defer signal.Stop(continued)
	if unix.Kill(target, unix.SIGSTOP) == nil {
		<-continued
	}
}

// StopSignal stops a process, and ContinueSignal continues it.
const (
	StopSignal     = unix.SIGSTOP
	ContinueSignal = unix.SIGCONT
)

// sentLimit bounds awaitSent, should ContinueSignal never come.
const sentLimit = time.Second

// overtakes is by how much a signal may come before one that was sent earlier.
const overtakes = 5 * time.Millisecond

// awaitSent returns when the signals that tell a program to end, and that were sent to this
// process before, have been received: a busy machine delivers them late, and CMD may have
// ended by the same signal meanwhile. ContinueSignal, which does nothing to a process that
// runs, is sent after them. Its number is higher: of those that are pending, the kernel and the
// Go runtime deliver the lowest first. But another thread may have begun to receive one of
// them, and be overtaken: it is given the time that a preempted thread needs.
func awaitSent() {
	last := make(chan os.Signal, 1)
	signal.Notify(last, ContinueSignal)
	defer signal.Stop(last)
	if unix.Kill(unix.Getpid(), ContinueSignal) != nil {
		return
	}
	select {
	case <-last:
		time.Sleep(overtakes)
	case <-time.After(sentLimit):
	}
}

func signalNumber(name string) syscall.Signal { return unix.SignalNum(name) }

// SignalName names a signal.
func SignalName(sig syscall.Signal) string { return unix.SignalName(sig) }
