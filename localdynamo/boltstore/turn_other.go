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

// Pauses between attempts to lock the file. They are short, so that a free file is
// used at once, and have jitter, so that waiting processes do not run in step.
const (
	minPause = 500 * time.Microsecond
	maxPause = 8 * time.Millisecond
)

// place is not used on this system. The kernel's queue does not help here, because bbolt
// takes the lock itself, and one file handle cannot have the lock twice.
type place struct{}

// inTurn calls open with the file, which bbolt locks. It repeats the call until the file is
// free or ctx ends. It does not use bbolt's own wait, which has pauses of 50 ms and no
// context.
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

// unlock does nothing: here a lock ends when the file is closed.
func unlock(*os.File) {}
