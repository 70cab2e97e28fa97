//go:build !linux

package plainfile

// renameNew returns false: here only a link does not replace an existing file.
func renameNew(string, string) (done bool, err error) { return false, nil }
