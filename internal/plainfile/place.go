package plainfile

import "os"

// Place renames the file at temporary to path. It fails if path exists.
func Place(temporary, path string) error {
	if done, err := renameNew(temporary, path); done {
		return err
	}
	if err := os.Link(temporary, path); err != nil {
		return err
	}
	return os.Remove(temporary)
}
