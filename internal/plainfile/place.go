package plainfile

import (
	"os"
	"path/filepath"
)

// Place renames a file from temporary to path. If path exists, Place changes nothing, and returns
// an error. Once Place has returned nil, the new name survives a power failure (fsync(2)), on
// systems and file systems that can sync a directory.
func Place(temporary, path string) error {
	done, err := renameNew(temporary, path)
	if !done {
		if err = os.Link(temporary, path); err == nil {
			err = os.Remove(temporary)
		}
	}
	if err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // Windows and some file systems cannot do this
		_ = dir.Close()
	}
	return nil
}
