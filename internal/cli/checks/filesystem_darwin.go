package checks

import "golang.org/x/sys/unix"

// FileSystem returns the kind of the file system that path is on, and the bytes
// that are free there for this user.
func FileSystem(path string) (kind string, free uint64, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return "", 0, err
	}
	return unix.ByteSliceToString(fs.Fstypename[:]), fs.Bavail * uint64(fs.Bsize), nil
}
