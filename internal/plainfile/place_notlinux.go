//go:build !linux

package plainfile

// renameNew returns false: on this system, only creating a link never replaces an existing
// file.
func renameNew(string, string) (done bool, err error) { return false, nil }
