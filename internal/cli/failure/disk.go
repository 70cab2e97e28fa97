package failure

import (
	"strings"
	"syscall"
)

// Disk is what is wrong with where a local store is, and what to do.
type Disk struct{ is, do string }

// DiskIn reads from the text of an error whether the disk is what failed: the engine
// answers as a server does, so nothing else of the error comes through.
func DiskIn(text string) (Disk, bool) {
	for _, d := range []struct {
		err syscall.Errno
		Disk
	}{
		{syscall.ENOSPC, Disk{"the disk is full", "free some space there"}},
		{syscall.EDQUOT, Disk{"this user's disk quota is used up", "free some space there, or have the quota raised"}},
		{syscall.EFBIG, Disk{"the file is as large as it may be", "raise the limit of ulimit -f, or name a file on another file system with --file"}},
		{syscall.EROFS, Disk{"the file system is read-only", "mount it for writing, or name another file with --file"}},
	} {
		if strings.Contains(text, d.err.Error()) {
			return d.Disk, true
		}
	}
	return Disk{}, false
}

func (d Disk) String() string { return d.is + ": " + d.do }
