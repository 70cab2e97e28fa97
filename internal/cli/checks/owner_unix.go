//go:build unix

package checks

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"syscall"
)

// ownerOf returns the name or the number of a file's owner.
func ownerOf(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	uid := fmt.Sprint(stat.Uid)
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return uid
}

// inodeOf returns the number of a file in its file system.
func inodeOf(path string) (uint64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fs.ErrInvalid
	}
	return stat.Ino, nil
}
