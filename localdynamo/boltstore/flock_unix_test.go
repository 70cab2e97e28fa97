//go:build unix

package boltstore_test

import (
	"os"
	"syscall"
)

// isFree reports whether no process has locked the file.
func isFree(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
