//go:build unix

package cli

import (
	"io/fs"
	"os"
	"syscall"
)

// giveGroup gives a file the group of its directory. Whoever is not of that
// group cannot, and has it writable for all or not at all.
func giveGroup(f *os.File, dir fs.FileInfo) {
	if st, ok := dir.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(-1, int(st.Gid))
	}
}
