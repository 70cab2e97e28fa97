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

// place is unused on this system: bbolt locks the file itself, so this package cannot wait
// in the kernel's queue for that lock.
type place struct{}

// inTurn calls open with the file, which bbolt locks. If the file is locked by another
// process, it repeats the call until the file is free or ctx ends. bbolt's own wait is not
// used, because it polls only every 50 ms and has no context.
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

// unlock does nothing: on this system the lock ends when the file is closed.
func unlock(*os.File) {}
