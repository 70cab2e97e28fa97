//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package boltstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	bolterrors "go.etcd.io/bbolt/errors"
)

// minPause and maxPause limit the pauses between attempts to lock the file. The pauses are
// short, so that the file is used soon after it becomes free. They have jitter, so that waiting
// processes do not try at the same times.
const (
	minPause = 500 * time.Microsecond
	maxPause = 8 * time.Millisecond
)

// place is unused on this system. bbolt locks the file itself here, so this package cannot wait
// for that lock in the kernel's queue.
type place struct{}

// inTurn calls open, where bbolt locks the file. While another process keeps it locked, inTurn
// repeats the call until open succeeds or ctx is done. The wait of bbolt is not used: it polls only
// every 50 ms and has no context.
func (s *store) inTurn(ctx context.Context, open func(*os.File) error) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		f, err := openOrMake(s.path, os.O_RDWR, s.owner)
		if err == nil {
			err = open(f)
		}
		if !errors.Is(err, bolterrors.ErrTimeout) {
			return err
		}
		select {
		case <-time.After(rand.N(pause) + pause/2):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// unlock does nothing on this system: closing the file ends the lock.
func unlock(*os.File) {}
