//go:build !linux

package plainfile

// renameNew always returns false, because a rename on this system may replace an existing file.
// Place then creates a hard link, which never replaces a file.
func renameNew(string, string) (done bool, err error) { return false, nil }
