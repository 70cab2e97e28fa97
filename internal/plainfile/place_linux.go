package plainfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames a file unless the new name is taken. The file never has two names. It
// returns false on file systems that do not support this.
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
