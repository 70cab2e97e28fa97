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

// giveGroup gives the file f the group of its directory dir, so that members of this group can use
// f. If the user is not a member, the kernel refuses this. Other users can then use f only if its
// mode lets everyone use it.
func giveGroup(f *os.File, dir fs.FileInfo) {
	if st, ok := dir.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(-1, int(st.Gid))
	}
}
