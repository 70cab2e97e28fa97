// Package filefault describes the faults of a local store's file: whether they end by
// themselves, and how to repair them. Packages that handle such errors share it. Package
// boltstore marks the lasting errors. The engine refuses a request that failed with such an
// error with the error code Code, and no client repeats that request. The command-line tool
// gives the advice.
package filefault

import (
	"errors"
	"strings"
	"syscall"
)

// Fault describes a problem of the file or its folder, and its remedy.
type Fault struct {
	is, do string
	passes bool
}

// faults are in order of precedence: the text of an error may also contain the text of a
// later fault.
var faults = []struct {
	err syscall.Errno
	Fault
}{
	{syscall.ENOSPC, Fault{"the disk is full", "free some space there", true}},
	{syscall.EDQUOT, Fault{"this user's disk quota is used up", "free some space there, or have the quota raised", true}},
	{syscall.EFBIG, Fault{"the file is as large as it may be", "raise the limit of ulimit -f, or name a file on another file system with --file", false}},
	{syscall.EROFS, Fault{"the file system is read-only", "mount it for writing, or name another file with --file", false}},
	{syscall.ENFILE, Fault{"this machine can open no more files", "end programs that have files open, or raise its limit (fs.file-max)", false}},
	{syscall.EMFILE, Fault{"this process can open no more files", "raise the limit of ulimit -n", false}},
}

// Of returns the fault in an error. It returns false if there is none.
func Of(err error) (Fault, bool) {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		for _, f := range faults {
			if errno == f.err {
				return f.Fault, true
			}
		}
	}
	return Fault{}, false
}

// In returns the fault in the text of an error. The engine answers like a server, so its
// client receives only the text of the error.
func In(text string) (Fault, bool) {
	for _, f := range faults {
		if strings.Contains(text, f.err.Error()) {
			return f.Fault, true
		}
	}
	return Fault{}, false
}

// Passes reports whether the fault may end without a change to leasehold or its machine,
// for example when another program frees space.
func (f Fault) Passes() bool { return f.passes }

func (f Fault) String() string { return f.is + ": " + f.do }

// Code is the error code of a request that the engine refuses because its store cannot be
// used until an operator has repaired it.
const Code = "StoreUnusableException"

// Lasting marks the error of a store that cannot be used until an operator has repaired it.
func Lasting(err error) error { return &lasting{err} }

// IsLasting reports whether an error is marked by Lasting.
func IsLasting(err error) bool {
	var marked *lasting
	return errors.As(err, &marked)
}

type lasting struct{ err error }

func (e *lasting) Error() string { return e.err.Error() }

func (e *lasting) Unwrap() error { return e.err }
