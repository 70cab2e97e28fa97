package plainfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace replaces a file atomically. Even after a power failure, the file has either its old
// or its new content. The new file has the given mode.
func Replace(path string, content []byte, mode fs.FileMode) error {
	temporary, err := Temporary(path, content, mode)
	if err != nil {
		return err
	}
	// Remove does nothing after a successful rename, because the temporary file no longer exists.
	defer os.Remove(temporary)
	return os.Rename(temporary, path)
}

var (
	// ErrChanged is returned if a file has been changed or replaced since the caller read
	// it.
	ErrChanged = errors.New("another process has changed it in the meantime")
	// ErrLocked is returned if another process keeps a file locked for longer than
	// lockPatience.
	ErrLocked = errors.New("another process keeps it locked")
)

// Swap replaces a file, but only if the file has the content "before". If "before" is nil, the
// file must not exist. If several processes replace the same content at the same time, Swap
// succeeds in one process and returns ErrChanged in the others.
func Swap(path string, before, content []byte, mode fs.FileMode) error {
	temporary, err := Temporary(path, content, mode)
	if err != nil {
		return err
	}
	// Remove does nothing after a successful rename, because the temporary file no longer exists.
	defer os.Remove(temporary)
	if before == nil {
		empty, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode) //nolint:gosec // the user of the command has named the path
		if errors.Is(err, fs.ErrExist) {
			return ErrChanged
		}
		if err != nil {
			return err
		}
		_ = empty.Close()
	}
	return Alone(path, func(now []byte) error {
		if !bytes.Equal(now, before) {
			return ErrChanged
		}
		return os.Rename(temporary, path)
	})
}

// Alone calls fn with the content of a file, which fn may replace or remove. Other calls of Alone
// for the file wait meanwhile, except on systems without file locks. Alone returns ErrChanged if
// the file is gone or was replaced during the wait.
func Alone(path string, fn func(content []byte) error) error {
	f, err := Open(path, os.O_RDONLY, Trusted)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrChanged
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := flock(f); errors.Is(err, ErrLocked) {
		return err
	}
	locked, err := f.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Lstat(path); err != nil || !os.SameFile(locked, named) {
		return ErrChanged
	}
	content, err := io.ReadAll(f)
	if err == nil {
		err = fn(content)
	}
	if err == nil {
		syncDir(filepath.Dir(path))
	}
	return err
}

// syncDir writes the entries of a directory to disk, so that they survive a power failure. It
// ignores errors, because some file systems do not support this.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil { //nolint:gosec // the user of the command has named the path
		_ = d.Sync()
		_ = d.Close()
	}
}

// Temporary writes content to a new file in the directory of path, and returns the new file's
// name. The caller then renames the file to path.
func Temporary(path string, content []byte, mode fs.FileMode) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
