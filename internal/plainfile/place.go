package plainfile

import "os"

// Place gives a new file its name, which nothing may have, and takes its temporary name.
func Place(temporary, path string) error {
	if done, err := renameNew(temporary, path); done {
		return err
	}
	if err := os.Link(temporary, path); err != nil {
		return err
	}
	return os.Remove(temporary)
}
