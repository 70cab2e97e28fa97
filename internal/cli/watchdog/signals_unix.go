//go:build unix

package watchdog

import (
	"os/signal"
	"syscall"
)

// KillGroup sends a signal to every process of a group.
func KillGroup(group int, sig syscall.Signal) error { return syscall.Kill(-group, sig) }

// ignoreSignals makes the watchdog ignore signals that are meant for its supervisor, and
// SIGPIPE, since the supervisor may die before it reads a report.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGTSTP, syscall.SIGPIPE)
}
