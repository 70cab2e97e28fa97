package plainfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames a file, and returns an error if the new name exists. The file never has
// both names. done is false if the file system does not support such a rename.
func renameNew(from, to string) (done bool, err error) {
	err = unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EEXIST):
		return true, &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return false, nil
}
