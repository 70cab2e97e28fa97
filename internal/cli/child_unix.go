//go:build unix

package cli

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killGroup sends a signal to every process of a group.
func killGroup(group int, sig syscall.Signal) error { return unix.Kill(-group, sig) }

// ownSession keeps signals of the terminal from a process.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ignoreSignals makes the watchdog ignore signals that are meant for its
// supervisor, and SIGPIPE, as the supervisor may die before it reads a report.
func ignoreSignals() {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGALRM, unix.SIGTSTP, unix.SIGPIPE)
}

// exitCode returns the exit code of a process as a shell shows it: 128+N for
// signal N.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return codeSignal + int(status.Signal())
	}
	return status.ExitStatus()
}

const (
	lockPatience = 3 * time.Second
	lockPause    = time.Millisecond
)

// lockFile locks a file (flock(2)) and waits for that if need be: other
// processes hold it for microseconds, unless one was stopped just then. No CMD waits
// for that one, and no key stays held.
func lockFile(path string) (unlock func(), err error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(lockPause) {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		again := errors.Is(err, unix.EINTR) || errors.Is(err, unix.EWOULDBLOCK)
		if !again || time.Now().After(deadline) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errors.New("another process keeps it locked")
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { _ = unix.Close(fd) }, nil
}
