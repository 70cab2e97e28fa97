//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package boltstore

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	bolterrors "go.etcd.io/bbolt/errors"
)

// look locks the file, as bbolt does next: what is not locked may change. Then it checks
// the structure, if that has not been done or others than root and the caller may write
// to the file.
func (s *file) look(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return bolterrors.ErrTimeout
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if s.looked.Load() && ours(info) {
		return nil
	}
	if info.Size() > maxFile {
		return damagef("it has %d bytes", info.Size())
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Munmap(b) }()
	if err := checkStructure(b); err != nil {
		return err
	}
	s.looked.Store(true)
	return nil
}

// ours reports whether nobody but root and the caller may write to a file.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid()) && info.Mode().Perm()&0o022 == 0
}

// unlock ends the lock that bbolt has on the file.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
