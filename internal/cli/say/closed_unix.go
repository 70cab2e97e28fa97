//go:build unix

package say

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// IsClosed reports whether a standard stream was closed when this process began. The Go
// runtime has then opened the null device instead, for reading and writing, and output to
// it is lost without an error. A shell opens that device only for writing.
func IsClosed(stream io.Writer) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	null, err := os.Stat(os.DevNull)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	if err != nil || !os.SameFile(null, info) {
		return false
	}
	mode, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && mode&unix.O_ACCMODE == unix.O_RDWR
}
