//go:build unix

package plainfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW | syscall.O_NOCTTY

func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

func ownerName(info fs.FileInfo) string { return fmt.Sprintf("user %d", ownerOf(info)) }

// Another returns the name of the user who owns dir or, if dir does not exist, the nearest
// existing directory above it. It returns "" if that user is root or the caller.
func Another(dir string) string {
	for {
		info, err := os.Stat(dir)
		if err == nil {
			if slices.Contains([]int{0, os.Geteuid()}, ownerOf(info)) {
				return ""
			}
			return ownerName(info)
		}
		above := filepath.Dir(dir)
		if above == dir {
			return ""
		}
		dir = above
	}
}

// names returns how many names (hard links) a file has.
func names(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // on some other systems, Nlink has a smaller type
	}
	return 1
}

// closed reports whether only root and the user of this process can create files in a
// directory.
func closed(dir fs.FileInfo) bool {
	return slices.Contains([]int{0, os.Geteuid()}, ownerOf(dir)) && dir.Mode().Perm()&0o022 == 0
}

// mayLead reports whether the package's rule allows following a symbolic link in dir. If other
// users may create files in dir, the link must belong to root or to the user of this process. It
// must then also have only one name, because a hard link that another user makes to root's symbolic
// link also belongs to root.
func mayLead(link, dir fs.FileInfo) bool {
	return closed(dir) || slices.Contains([]int{0, os.Geteuid()}, ownerOf(link)) && names(link) == 1
}

// mayOwn reports whether a file in dir belongs to one of the users who may own files there. The
// parameter "owner" selects these users.
func mayOwn(file, dir fs.FileInfo, owner Owner) bool {
	mode := dir.Mode().Perm()
	return closed(dir) || owner == Anybody || owner == Members && mode&0o022 == 0o020 ||
		slices.Contains([]int{0, os.Geteuid(), ownerOf(dir)}, ownerOf(file))
}

// mayPass reports whether a path may continue through the directory "next", an entry of dir. For
// root, mayOwn decides. For any other user, the answer is always yes, because users may want to
// share a directory that one of them has made in /tmp.
func mayPass(next, dir fs.FileInfo) bool {
	return os.Geteuid() != 0 || mayOwn(next, dir, Members)
}
