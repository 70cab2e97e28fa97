//go:build unix

package store

import (
	"io/fs"
	"os"
	"syscall"
)

// giveGroup changes the group of the file f to the group of its directory dir. If the user
// does not belong to that group, giveGroup does nothing. Then the permissions of f for
// others decide who else may use the file.
func giveGroup(f *os.File, dir fs.FileInfo) {
	if st, ok := dir.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(-1, int(st.Gid))
	}
}
