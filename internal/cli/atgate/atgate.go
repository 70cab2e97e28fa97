//go:build unix

// Package atgate implements the child process of "leasehold run" that becomes CMD. The child
// first waits at the gate, a socket to its parent; see type gate in package process.
//
// The child does all its work in the init function of this package, and never returns from it.
// The package imports almost nothing. So the child never initializes the AWS SDK, which would
// take several times as long as the child's own work.
package atgate

import (
	"os"
	"runtime"
	"strconv"
	"syscall"

	"github.com/leasehold-go/leasehold/internal/cli/ownrights" // imported because ownrights must check the process before atgate reads the arguments
)

// Args returns the command line of a child that waits at the gate. fd is the file
// descriptor of the gate. When the gate opens, the child executes the program at path with
// args.
func Args(fd int, path string, args []string) []string {
	return append([]string{"leasehold", "gate", "--", strconv.Itoa(fd), path}, args...)
}

func init() {
	if len(os.Args) < len(Args(0, "", nil))+1 || os.Args[0] != "leasehold" || os.Args[1] != "gate" || os.Args[2] != "--" {
		return
	}
	if fd, err := strconv.Atoi(os.Args[3]); err == nil {
		execWhenOpen(fd, os.Args[4], os.Args[5:])
	}
	os.Exit(ownrights.NotRun)
}

// execWhenOpen waits at the gate, and then replaces this process by CMD through execve(2).
// It returns only if the gate was closed or execve failed.
func execWhenOpen(fd int, path string, args []string) {
	syscall.CloseOnExec(fd)
	// Each thread has its own parent-death signal, and execve(2) keeps only the setting of the
	// thread that calls it. So one thread must call both dieWithParent and execve. If the parent
	// died before dieWithParent was called, no signal comes, but waitOpen finds the gate closed.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dieWithParent()
	if !waitOpen(fd) {
		return
	}
	if number, ok := syscall.Exec(path, args, os.Environ()).(syscall.Errno); ok { //nolint:gosec // syscall.Exec returns only a syscall.Errno; the user asked to run CMD, so its path is trusted
		_, _ = syscall.Write(fd, []byte(strconv.Itoa(int(number))))
	}
}

// waitOpen blocks until the parent opens the gate, and then returns true. It returns false
// if the gate was closed instead.
func waitOpen(fd int) bool {
	for {
		n, err := syscall.Read(fd, make([]byte, 1))
		if err != syscall.EINTR {
			return n == 1
		}
	}
}
