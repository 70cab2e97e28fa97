//go:build !unix

package plainfile

// Lock locks nothing: of what two processes write at the same time, that of one is lost.
func Lock(string) (unlock func(), err error) { return func() {}, nil }

// LockExisting locks nothing, either: of two processes that replace a file at the same
// moment, both may believe that they have.
func LockExisting(string) (unlock func(), err error) { return func() {}, nil }
