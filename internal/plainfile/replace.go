package plainfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace replaces a file as a whole or not at all, even if power fails. It gets that mode.
func Replace(path string, content []byte, mode fs.FileMode) error {
	temporary, err := Temporary(path, content, mode)
	if err != nil {
		return err
	}
	defer os.Remove(temporary) // fails after the rename, as it should
	return os.Rename(temporary, path)
}

// Temporary writes a file beside that of a path, whose name it is to take, and returns
// its own.
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
