//go:build !linux

package plainfile

// renameNew: only a link leaves alone what has the name.
func renameNew(string, string) (done bool, err error) { return false, nil }
