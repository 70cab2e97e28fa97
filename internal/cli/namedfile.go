package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/leasehold-go/leasehold/internal/plainfile"
)

// openNamed opens a file that the user names and that is there, unless another user may
// have planted it: a regular one, a device, a FIFO or a stream of this process. Errors
// name the path.
func openNamed(path string, flag int) (*os.File, error) {
	file, err := plainfile.Named(path)
	if err != nil {
		return nil, openError(path, err)
	}
	if plainfile.IsStream(file) {
		return os.OpenFile(file, flag, 0)
	}
	info, err := os.Lstat(file)
	switch {
	case err != nil:
		return nil, openError(path, err)
	case info.Mode().IsRegular():
		f, err := plainfile.Open(file, flag, plainfile.Trusted)
		return f, openError(path, err)
	}
	f, err := os.OpenFile(file, flag, 0)
	return f, openError(path, err)
}

// openError is an error of the file that was named, and not of one on the way to it.
func openError(path string, err error) error {
	if in := (*fs.PathError)(nil); errors.As(err, &in) {
		return &fs.PathError{Op: "open", Path: path, Err: in.Err}
	}
	return err
}

// readNamed reads a file that the user names: see openNamed.
func readNamed(path string) ([]byte, error) {
	f, err := openNamed(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
