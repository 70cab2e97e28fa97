// Package filefault describes errors that the operating system returns for the file of a local
// store (package boltstore). For each error it has advice for the user, and says whether the error
// may disappear without a repair. Package boltstore calls Lasting to mark the errors after which an
// operator must repair the store. If a request fails with a marked error, the local engine (package
// localdynamo) replies with the error code Code, and clients do not retry. The command leasehold
// prints the advice.
package filefault

import (
	"errors"
	"slices"
	"strings"
	"syscall"
)

// Fault is a problem with the file of a local store or with its folder, and advice to the
// user.
type Fault struct {
	errno  syscall.Errno
	is, do string
	passes bool
}

// faults contains the known faults, in order of precedence. The order matters because the text of
// ENFILE, "too many open files in system", also contains the text of EMFILE.
var faults = []Fault{
	{syscall.ENOSPC, "the disk is full", "free some space there", true},
	{syscall.EDQUOT, "this user's disk quota is used up", "free some space there, or have the quota raised", true},
	{syscall.EIO, "the disk has failed", "look in the kernel's log, and check the disk", true},
	{syscall.EFBIG, "the file is as large as it may be", "raise the limit of ulimit -f, or name a file on another file system with --file", false},
	{syscall.EROFS, "the file system is read-only", "mount it for writing, or name another file with --file", false},
	{syscall.ENFILE, "this machine can open no more files", "end programs that have files open, or raise its limit (fs.file-max)", false},
	{syscall.EMFILE, "this process can open no more files", "raise the limit of ulimit -n", false},
}

// Of returns the fault for the error number (errno) that err wraps. It returns false if err
// wraps no error number of a known fault.
func Of(err error) (Fault, bool) {
	var errno syscall.Errno
	errors.As(err, &errno) // leaves errno 0, which is no fault, if err wraps no error number
	return first(func(f Fault) bool { return f.errno == errno })
}

// In returns the known fault whose error text occurs in text. It returns false if there is no
// such fault. Clients of the local engine need this function: the engine replies like a server,
// so a client receives only the text of an error.
func In(text string) (Fault, bool) {
	return first(func(f Fault) bool { return strings.Contains(text, f.errno.Error()) })
}

func first(is func(Fault) bool) (Fault, bool) {
	if i := slices.IndexFunc(faults, is); i >= 0 {
		return faults[i], true
	}
	return Fault{}, false
}

// Passes reports whether the fault may end without a repair by the user, for example when
// another program frees disk space.
func (f Fault) Passes() bool { return f.passes }

func (f Fault) String() string { return f.is + ": " + f.do }

// Code is the error code with which the local engine answers a request if its store cannot
// be used until an operator has repaired it.
const Code = "StoreUnusableException"

// Lasting returns an error that wraps err. The returned error means that the store cannot be used
// until an operator has repaired it.
func Lasting(err error) error { return &lasting{err} }

// IsLasting reports whether err wraps an error from Lasting.
func IsLasting(err error) bool {
	var marked *lasting
	return errors.As(err, &marked)
}

type lasting struct{ err error }

func (e *lasting) Error() string { return e.err.Error() }

func (e *lasting) Unwrap() error { return e.err }
