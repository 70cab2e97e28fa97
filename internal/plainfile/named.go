package plainfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// OpenNamed opens an existing file that the user of the command names. It may be a regular file, a
// device, a FIFO or an open stream of this process. OpenNamed refuses a file that another user may
// have planted. Errors contain the path.
func OpenNamed(path string, flag int) (*os.File, error) {
	file, err := Named(path)
	if err != nil {
		return nil, openError(path, err)
	}
	var f *os.File
	if info, found := os.Lstat(file); found == nil && info.Mode().IsRegular() && !IsStream(file) {
		f, err = Open(file, flag, Trusted)
	} else {
		f, err = os.OpenFile(file, flag, 0) //nolint:gosec // the user of the command has named the path
	}
	return f, openError(path, err)
}

// openError puts the whole path into an fs.PathError, which may contain only a directory of the
// path. The cause stays the same. openError returns any other error unchanged.
func openError(path string, err error) error {
	if in := (*fs.PathError)(nil); errors.As(err, &in) {
		return &fs.PathError{Op: "open", Path: path, Err: in.Err}
	}
	return err
}

// ReadNamed reads the content of a file that the user of the command names. It opens the file
// with OpenNamed.
func ReadNamed(path string) ([]byte, error) {
	f, err := OpenNamed(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
