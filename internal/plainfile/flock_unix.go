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

// flock locks a file (flock(2)). It waits while another process holds the lock: processes hold
// it only for microseconds. After lockPatience, flock returns ErrLocked, because the process
// that holds the lock may be suspended (SIGSTOP).
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
