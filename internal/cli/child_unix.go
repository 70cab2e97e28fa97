//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// killGroup sends a signal to every process of a group.
func killGroup(group int, sig syscall.Signal) error { return unix.Kill(-group, sig) }

// ownSession is for a process that no signal from the terminal may reach.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// outlive makes this process ignore whatever it may be sent together with its
// supervisor, and the end of those who would read its reports.
func outlive() {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGALRM, unix.SIGTSTP, unix.SIGPIPE)
}

// exitCode is that of a process that has ended, as a shell gives it.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return codeSignal + int(status.Signal())
	}
	return status.ExitStatus()
}

// lockFile waits for the lock of a file, whose processes hold it for
// microseconds (flock(2)).
func lockFile(path string) (unlock func(), err error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	for {
		err = unix.Flock(fd, unix.LOCK_EX)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { _ = unix.Close(fd) }, nil
}
