//go:build unix

package boltstore_test

import (
	"os"
	"syscall"
)

// isFree reports whether nobody has the file locked.
func isFree(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
