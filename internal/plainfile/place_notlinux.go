//go:build !linux

package plainfile

// renameNew always returns false. On this system, creating a link is the only operation
// that never replaces an existing file.
func renameNew(string, string) (done bool, err error) { return false, nil }
