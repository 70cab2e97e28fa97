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

// flock locks a file (flock(2)). It waits for the lock, because other processes hold it
// only for microseconds. It returns ErrLocked after a while: the process that holds the
// lock may have been stopped.
func flock(f *os.File) error {
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(lockPause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.EWOULDBLOCK):
			return err
		case time.Now().After(deadline):
			return ErrLocked
		}
	}
}
