//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// caughtSignals are passed on to CMD, apart from PIPE: a closed stderr must
// not take the supervisor away from CMD.
var caughtSignals = []os.Signal{
	unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
	unix.SIGALRM, unix.SIGVTALRM, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT, unix.SIGPIPE,
}

// ends reports whether a signal ends a wait.
func ends(sig syscall.Signal) bool {
	switch sig {
	case unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT, unix.SIGPIPE:
		return false
	}
	return true
}

// pauseSelf stops this process, as the terminal asked, until it is continued.
func pauseSelf(sig os.Signal) {
	if sig == unix.SIGTSTP {
		stopSelf()
	}
}

// stopSelf stops this process until it is sent continueSignal.
func stopSelf() { stopUntilContinued(unix.Getpid()) }

// stopUntilContinued stops a process or group to which this process belongs.
// The kernel may let the sending thread run on for a while: only the signal to
// go on says that the stop is over (kill(2) promises no more of a process with
// several threads).
func stopUntilContinued(target int) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, continueSignal)
	defer signal.Stop(continued)
	if unix.Kill(target, unix.SIGSTOP) == nil {
		<-continued
	}
}

// continueSignal lets a stopped process go on.
const continueSignal = unix.SIGCONT

func signalNumber(name string) syscall.Signal { return unix.SignalNum(name) }

func signalName(sig syscall.Signal) string { return unix.SignalName(sig) }
