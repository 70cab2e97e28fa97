//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package boltstore

import "os"

// look does nothing: bbolt's lock, before which the file may change, cannot be had twice.
func (*file) look(*os.File) error { return nil }

// unlock does nothing: here a lock ends when the file is closed.
func unlock(*os.File) {}
