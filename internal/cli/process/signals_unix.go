//go:build unix

package process

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Caught lists the signals that are caught. They are passed on to CMD, except PIPE, which is
// caught so that a closed stderr does not kill the supervisor of CMD.
var Caught = []os.Signal{
	unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
	unix.SIGALRM, unix.SIGVTALRM, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT, unix.SIGPIPE,
}

// PassOn passes a signal of this process on to CMD's group.
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

// stopsJob reports whether a signal comes from Ctrl-Z and should stop this process.
func stopsJob(sig os.Signal) bool { return sig == unix.SIGTSTP && isJob() }

// isJob reports whether this process can be stopped and continued as a job. The first process
// of a container does not stop by its own signals. The group of a session's leader (ssh -t HOST
// leasehold run) has no shell that would continue it, and TSTP has no effect on other processes
// there (POSIX, "orphaned process group"). In both cases a stopped process would hang.
func isJob() bool {
	leader, err := unix.Getsid(0)
	return unix.Getpid() != 1 && (err != nil || leader != unix.Getpgrp())
}

// stopSelf stops this process until it receives ContinueSignal.
func stopSelf() { stopUntilContinued(unix.Getpid()) }

// stopUntilContinued stops this process, or its group, until it is continued. The kernel may
// let the calling thread run on for a while after kill(2), so it waits for ContinueSignal: only
// that means that the stop is over.
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

// sentLimit limits awaitSent in case ContinueSignal never arrives.
const sentLimit = time.Second

// overtakes is the longest time by which a signal may arrive before an earlier one.
const overtakes = 5 * time.Millisecond

// awaitSent returns when the ending signals that were sent to this process before have been
// received. A busy machine delivers them late, and CMD may meanwhile have ended by the same
// signal. awaitSent sends ContinueSignal, which does not affect a running process. Its number
// is higher, and the kernel and the Go runtime deliver pending signals with the lowest number
// first. But another thread may be about to receive an earlier signal, and be overtaken.
// awaitSent therefore waits as long as a preempted thread needs.
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
