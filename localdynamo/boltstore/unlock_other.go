//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package boltstore

import "os"

// unlock does nothing: here a lock ends when the file is closed.
func unlock(*os.File) {}
