//go:build unix

package store

import (
	"io/fs"
	"os"
	"syscall"
)

// MachineDir is the directory of the machine's store, the local store that all users of a
// machine share. An administrator creates the directory.
const MachineDir = "/var/lib/leasehold"

// giveGroup changes the group of the file f to the group of its directory dir. It does
// nothing if the user does not belong to that group. Other users then need the permissions
// that f gives to everyone.
func giveGroup(f *os.File, dir fs.FileInfo) {
	if st, ok := dir.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(-1, int(st.Gid))
	}
}
