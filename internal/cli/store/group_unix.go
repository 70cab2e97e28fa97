//go:build unix

package store

import (
	"io/fs"
	"os"
	"syscall"
)

// giveGroup gives a file the group of its directory. A user who does not belong to that
// group cannot do this; giveGroup then does nothing. The permissions of the file for all
// other users decide in that case.
func giveGroup(f *os.File, dir fs.FileInfo) {
	if st, ok := dir.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(-1, int(st.Gid))
	}
}
