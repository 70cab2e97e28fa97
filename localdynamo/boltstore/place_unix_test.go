//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package boltstore

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// The kernel may grant a file lock just before or just after the waiting request stops waiting.
// In both cases, this process must release the file lock.
func TestFileLockIsReleasedAfterRequestStopsWaiting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	lab.OK(t, lab.ErrorOf(Make(path, nil)))
	lab.Variants(t, map[string]func(p *place){
		"before the grant": func(p *place) {
			lab.Want(t, "leave keeps the position", p.leave(), true)
			p.wait()
		},
		"after the grant": func(p *place) {
			p.wait()
			lab.Want(t, "leave keeps the position", p.leave(), false)
		},
	}, func(t *testing.T, leave func(p *place)) {
		f := lab.Must(os.OpenFile(path, os.O_RDWR, 0))(t)
		p := &place{file: f, wanted: true, granted: make(chan struct{})}
		leave(p)
		lab.Want(t, "join succeeds", p.join(), false)
		again := lab.Must(os.OpenFile(path, os.O_RDWR, 0))(t)
		defer again.Close()
		lab.WantErr(t, "flock of the unlocked file", flock(again, syscall.LOCK_EX|syscall.LOCK_NB), nil)
		_ = f.Close() // p has already closed f; this call only keeps f reachable until here
	})
}
