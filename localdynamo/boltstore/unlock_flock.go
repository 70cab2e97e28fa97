//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package boltstore

import (
	"os"
	"syscall"
)

// unlock ends the lock that bbolt has on the file.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
