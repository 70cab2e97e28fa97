//go:build unix

package store

import (
	"io/fs"
	"os"
	"syscall"
)

// giveGroup gives a file the group of its directory. It fails silently for a user outside
// that group. The file's mode for other users then decides.
func giveGroup(f *os.File, dir fs.FileInfo) {
	if st, ok := dir.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(-1, int(st.Gid))
	}
}
