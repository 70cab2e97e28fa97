package plainfile

import "os"

// Place renames the file named temporary to path. It returns an error if path exists.
func Place(temporary, path string) error {
	if done, err := renameNew(temporary, path); done {
		return err
	}
	if err := os.Link(temporary, path); err != nil {
		return err
	}
	return os.Remove(temporary)
}
