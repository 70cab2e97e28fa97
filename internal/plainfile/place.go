package plainfile

import "os"

// Place renames a file from temporary to path. If path exists, Place changes nothing, and returns
// an error.
func Place(temporary, path string) error {
	if done, err := renameNew(temporary, path); done {
		return err
	}
	if err := os.Link(temporary, path); err != nil {
		return err
	}
	return os.Remove(temporary)
}
