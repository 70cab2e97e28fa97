//go:build !linux && !darwin

package cli

import "errors"

// fileSystemOf is not known on this system.
func fileSystemOf(string) (kind string, free uint64, err error) {
	return "", 0, errors.ErrUnsupported
}
