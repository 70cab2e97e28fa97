//go:build unix

package watchdog

import (
	"os/signal"
	"syscall"
)

// KillGroup sends sig to every process of the process group with the given id.
func KillGroup(group int, sig syscall.Signal) error { return syscall.Kill(-group, sig) }

// ignoreSignals makes this process, the watchdog, ignore signals that are meant for the
// supervisor. It also ignores SIGPIPE, because the supervisor may die before it reads a
// report.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGTSTP, syscall.SIGPIPE)
}
