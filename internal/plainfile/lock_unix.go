//go:build unix

package plainfile

import (
	"errors"
	"os"
	"syscall"
	"time"
)

const (
	lockPatience = 3 * time.Second
	lockPause    = time.Millisecond
)

// Lock locks a file (flock(2)), which it makes if need be, and waits for that: other
// processes hold it for microseconds, unless one was stopped just then. Nobody waits for
// that one: after a while the error is ErrLocked.
func Lock(path string) (unlock func(), err error) { return lock(path, syscall.O_RDWR|syscall.O_CREAT) }

// LockExisting is Lock for a file that is there, and that this user may only read.
func LockExisting(path string) (unlock func(), err error) { return lock(path, syscall.O_RDONLY) }

func lock(path string, flags int) (unlock func(), err error) {
	fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(lockPause) {
		err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
		again := errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.EWOULDBLOCK)
		if !again || time.Now().After(deadline) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		_ = syscall.Close(fd)
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { _ = syscall.Close(fd) }, nil
}
