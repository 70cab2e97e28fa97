//go:build unix

// Package atgate is the process that leasehold run starts, which waits at the gate and
// then becomes CMD (see gate.go of package process). It runs while the program's packages
// are initialized, and imports next to nothing: what the SDK and others prepare then
// costs several times as much as all that this process does.
package atgate

import (
	"os"
	"runtime"
	"strconv"
	"syscall"

	"github.com/leasehold-go/leasehold/internal/cli/ownrights" // initialized before anything here looks at arguments
)

// Args are the arguments of a process that waits at the gate, a file descriptor, to
// become the program at path with the arguments args.
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

// execWhenOpen waits at the gate and turns this process into CMD. It returns
// only if the gate was closed or CMD could not be executed.
func execWhenOpen(fd int, path string, args []string) {
	syscall.CloseOnExec(fd)
	// The signal that a parent's death sends belongs to one thread, and execve(2)
	// keeps that of its caller. Set it before reading the gate: if the parent has
	// died by then, the gate is closed.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dieWithParent()
	if !waitOpen(fd) {
		return
	}
	if number, ok := syscall.Exec(path, args, os.Environ()).(syscall.Errno); ok { //nolint:gosec // execve(2) has no other error; running CMD is what this is for
		_, _ = syscall.Write(fd, []byte(strconv.Itoa(int(number))))
	}
}

// waitOpen waits until the gate is opened (true), or closed (false).
func waitOpen(fd int) bool {
	for {
		n, err := syscall.Read(fd, make([]byte, 1))
		if err != syscall.EINTR {
			return n == 1
		}
	}
}
