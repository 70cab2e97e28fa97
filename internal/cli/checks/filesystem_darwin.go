package checks

import "golang.org/x/sys/unix"

// FileSystem returns the kind of the file system that contains path, such as "apfs".
func FileSystem(path string) (kind string, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(fs.Fstypename[:]), nil
}
