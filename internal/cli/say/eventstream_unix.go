//go:build unix

package say

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

// openInherited returns the file that this process has inherited with the given descriptor
// number. CMD inherits this descriptor only if it is 1 or 2, CMD's own stdout or stderr.
func openInherited(number string) (*os.File, error) {
	fd, err := strconv.Atoi(number)
	flags, closed := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	mode, unknown := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	switch {
	case err != nil, closed != nil, unknown != nil, flags&unix.FD_CLOEXEC != 0: // close-on-exec means that this process opened it itself: an inherited descriptor does not have this flag
		return nil, failure.Misusef("--events %s: this file descriptor is not open: redirect it, as in %[1]s>events.jsonl", number)
	case fd == 0:
		return nil, failure.Misusef("--events %s: this is CMD's standard input: use another file descriptor", number)
	case mode&unix.O_ACCMODE == unix.O_RDONLY:
		return nil, failure.Misusef("--events %s: this file descriptor is open for reading only", number)
	case fd <= 2: // write to a copy, because a broken pipe on descriptor 1 or 2 kills a Go program
		if fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			return nil, failure.Misusef("--events %s: %v", number, err)
		}
	default:
		unix.CloseOnExec(fd)
	}
	return os.NewFile(uintptr(fd), number), nil
}

// IsClosed reports whether stream, a standard stream, was closed when this process started. In its
// place, the Go runtime opens the null device for reading and writing, so output is lost without an
// error. A shell that redirects stream to /dev/null opens the device only for writing, so IsClosed
// then returns false.
func IsClosed(stream io.Writer) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	null, unknown := os.Stat(os.DevNull)
	info, err := f.Stat()
	if unknown != nil || err != nil || !os.SameFile(null, info) {
		return false
	}
	mode, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && mode&unix.O_ACCMODE == unix.O_RDWR
}
