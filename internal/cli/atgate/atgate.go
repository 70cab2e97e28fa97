//go:build unix

// Package atgate implements the process that leasehold run starts, which waits at the gate
// and then becomes CMD (see type gate in package process). Its init function does all of
// this, and the package imports next to nothing. The process thus never initializes the SDK
// and other packages, which would cost several times as much as its own work.
package atgate

import (
	"os"
	"runtime"
	"strconv"
	"syscall"

	"github.com/leasehold-go/leasehold/internal/cli/ownrights" // imported so that its check runs before any code here reads the arguments
)

// Args returns the arguments of a process that waits at the gate, the file descriptor fd,
// and then becomes the program at path with the arguments args.
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
	// The death signal belongs to one thread, and execve(2) keeps the calling thread's
	// signal. The signal must be set before the gate is read: if the parent died before the
	// signal was set, the gate is closed, and the read shows that.
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

// waitOpen waits at the gate. It returns true if the gate was opened, false if it was
// closed.
func waitOpen(fd int) bool {
	for {
		n, err := syscall.Read(fd, make([]byte, 1))
		if err != syscall.EINTR {
			return n == 1
		}
	}
}
